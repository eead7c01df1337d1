// FormatSpec: how one value is to be formatted; what Python's two mini-languages, % and format(),
// have in common.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weir::jinja {

// Widths and precisions beyond this are refused; a template has no use for them, and
// a thousand digits of a float take as long as many steps.
constexpr int kWidthMax = 1'000;

struct FormatSpec {
  std::string_view fill = " ";
  char align = '\0';  // '<' '>' '^' '=', or the type's own.
  char sign = '-';    // '-' only negatives, '+' always, ' ' a space for positives.
  bool alternate = false;
  char grouping = '\0';  // ',' or '_'.
  int width = 0;
  int precision = -1;
  char type = '\0';
};

// Takes digits off the front of `text`; none are 0. False beyond kWidthMax.
bool read_number(std::string_view& text, int& number);

// [[fill]align][sign][#][0][width][grouping][.precision][type], as format() has it. False if
// malformed.
bool parse_spec(std::string_view text, FormatSpec& spec);

std::string format_int(int64_t number, const FormatSpec& spec);
std::string format_float(double number, const FormatSpec& spec);
std::string format_text(std::string_view text, const FormatSpec& spec);

}  // namespace weir::jinja
