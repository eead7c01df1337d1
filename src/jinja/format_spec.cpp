// FormatSpec: numbers and text by specification.
#include "jinja/format_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "jinja/codepoint.h"
#include "jinja/number.h"

namespace weir::jinja {

bool read_number(std::string_view& text, int& number) {
  number = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    number = number * 10 + (text[0] - '0');
    if (number > kWidthMax) return false;
    text.remove_prefix(1);
  }
  return true;
}

namespace {

// Pads to the width; `prefix_bytes` (sign, 0x) stay before '=' padding.
std::string pad(const std::string& body, size_t prefix_bytes, const FormatSpec& spec, char align) {
  const size_t length = count_codepoints(body);
  if (length >= static_cast<size_t>(spec.width)) return body;
  const size_t room = static_cast<size_t>(spec.width) - length;
  const auto fill = [&spec](size_t count) {
    std::string out;
    for (; count > 0; --count) out += spec.fill;
    return out;
  };
  switch (align) {
    case '<':
      return body + fill(room);
    case '^':
      return fill(room / 2) + body + fill(room - room / 2);
    case '=':
      return body.substr(0, prefix_bytes) + fill(room) + body.substr(prefix_bytes);
    default:
      return fill(room) + body;
  }
}

void group_digits(std::string& digits, char separator, size_t every) {
  for (size_t i = digits.size(); i > every; i -= every) digits.insert(i - every, 1, separator);
}

std::string sign_text(bool negative, char sign) {
  return negative ? "-" : sign == '+' ? "+" : sign == ' ' ? " " : "";
}

std::string digits_in_base(uint64_t number, int base, bool upper) {
  char digits[64];  // Base 2.
  char* const end = std::to_chars(digits, std::end(digits), number, base).ptr;
  if (upper)
    std::transform(digits, end, digits,
                   [](char c) { return c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c; });
  return {digits, end};
}

// The digits of a float without its sign.
std::string float_digits(double number, const FormatSpec& spec) {
  const double size = std::fabs(number);
  if (spec.type == '\0' && spec.precision < 0) return float_repr(size);
  char type = spec.type == '\0' ? 'g' : spec.type == '%' ? 'f' : spec.type;
  if (type == 'n') type = 'g';
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  const char format[] = {'%',
                         spec.alternate ? '#' : '.',
                         spec.alternate ? '.' : '*',
                         spec.alternate ? '*' : type,
                         spec.alternate ? type : '\0',
                         '\0'};
  // 309 digits before the point at most.
  std::string digits(static_cast<size_t>(precision) + 330, '\0');
  const double shown = spec.type == '%' ? size * 100 : size;
  const int length = std::snprintf(digits.data(), digits.size(), format, precision, shown);
  digits.resize(static_cast<size_t>(length));
  if (spec.type == '\0' && std::isfinite(size) && digits.find_first_of(".e") == std::string::npos)
    digits += ".0";
  if (spec.type == '%') digits += '%';
  return digits;
}

}  // namespace

std::string format_int(int64_t number, const FormatSpec& spec) {
  const char type = spec.type;
  const unsigned base = type == 'x' || type == 'X' ? 16 : type == 'o' ? 8 : type == 'b' ? 2 : 10;
  const uint64_t size = number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  std::string digits = digits_in_base(size, base, type == 'X');
  if (spec.precision > 0 && digits.size() < static_cast<size_t>(spec.precision))
    digits.insert(0, static_cast<size_t>(spec.precision) - digits.size(), '0');
  if (spec.grouping) group_digits(digits, spec.grouping, base == 10 ? 3 : 4);
  std::string prefix = sign_text(number < 0, spec.sign);
  if (spec.alternate && base != 10) prefix += {'0', type};
  return pad(prefix + digits, prefix.size(), spec, spec.align ? spec.align : '>');
}

std::string format_float(double number, const FormatSpec& spec) {
  std::string digits = float_digits(number, spec);
  if (spec.grouping) {
    const size_t point = std::min(digits.find_first_not_of("0123456789"), digits.size());
    std::string whole = digits.substr(0, point);
    group_digits(whole, spec.grouping, 3);
    digits = whole + digits.substr(point);
  }
  const std::string prefix = sign_text(std::signbit(number) && !std::isnan(number), spec.sign);
  return pad(prefix + digits, prefix.size(), spec, spec.align ? spec.align : '>');
}

std::string format_text(std::string_view text, const FormatSpec& spec) {
  if (spec.precision >= 0)
    text = text.substr(0, codepoint_offset(text, static_cast<size_t>(spec.precision)));
  return pad(std::string(text), 0, spec, spec.align ? spec.align : '<');
}

bool parse_spec(std::string_view text, FormatSpec& spec) {
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (!text.empty()) {
    const size_t first = sequence_bytes(text[0]);
    if (text.size() > first && is_align(text[first])) {
      spec.fill = text.substr(0, first);
      spec.align = text[first];
      text.remove_prefix(first + 1);
    } else if (is_align(text[0])) {
      spec.align = text[0];
      text.remove_prefix(1);
    }
  }
  const auto take = [&text](std::string_view any) {
    if (text.empty() || any.find(text[0]) == std::string_view::npos) return '\0';
    const char c = text[0];
    text.remove_prefix(1);
    return c;
  };
  if (const char sign = take("+- ")) spec.sign = sign;
  spec.alternate = take("#") != '\0';
  if (take("0") && !spec.align) {
    spec.fill = "0";
    spec.align = '=';
  }
  if (!read_number(text, spec.width)) return false;
  spec.grouping = take(",_");
  if (take(".")) {
    if (text.empty() || text[0] < '0' || text[0] > '9') return false;
    if (!read_number(text, spec.precision)) return false;
  }
  if (!text.empty()) spec.type = take("bcdeEfFgGnosxX%");
  return text.empty();
}

}  // namespace weir::jinja
