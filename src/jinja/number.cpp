// Numbers as text.
#include "jinja/number.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "jinja/codepoint.h"
#include "jinja/value.h"

namespace weir::jinja {

std::string float_repr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  // Shortest digits in scientific notation: "-1.2345e+02".
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, number, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string out;
  if (text[0] == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  const size_t mark = text.find('e');
  int exponent = 0;
  const size_t digits_at = mark + (text[mark + 1] == '+' ? 2 : 1);
  std::from_chars(text.data() + digits_at, text.data() + text.size(), exponent);
  std::string digits(1, text[0]);
  if (mark > 2) digits += text.substr(2, mark - 2);
  const int count = static_cast<int>(digits.size());
  // Python writes an exponent below 1e-4 and from 1e16.
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out += "." + digits.substr(1);
    out += exponent < 0 ? "e-" : "e+";
    const std::string power = std::to_string(std::abs(exponent));
    return out + (power.size() < 2 ? "0" : "") + power;
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1)
    return out + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  const auto whole = static_cast<size_t>(exponent + 1);
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

namespace {

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

// Takes "0x", "0o" or "0b" off where base allows, and settles base 0. False if base 0 refuses it.
bool take_prefix(std::string_view& text, int& base) {
  const char kind = text.size() > 1 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  const int named = kind == 'x' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 0;
  if (named != 0 && (base == 0 || base == named)) {
    base = named;
    text.remove_prefix(2);
    if (!text.empty() && text[0] == '_') text.remove_prefix(1);
    return true;
  }
  if (base != 0) return true;
  base = 10;
  return text.empty() || text[0] != '0' || text.find_first_not_of("0_") == std::string_view::npos;
}

}  // namespace

IntParse parse_int(std::string_view text, int base, int64_t& number) {
  text = strip_left(strip_right(text));
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (!take_prefix(text, base) || text.empty()) return IntParse::kMalformed;
  Int128 total = 0;
  bool after_digit = false, large = false;
  for (const char c : text) {
    if (c == '_' && after_digit) {
      after_digit = false;
      continue;
    }
    const int digit = digit_value(c);
    if (digit >= base) return IntParse::kMalformed;
    total = total * base + digit;
    if (total > std::numeric_limits<int64_t>::max()) large = true, total = 0;
    after_digit = true;
  }
  if (!after_digit) return IntParse::kMalformed;
  if (large) return IntParse::kTooLarge;
  number = static_cast<int64_t>(negative ? -total : total);
  return IntParse::kOk;
}

std::optional<double> parse_float(std::string_view text) {
  text = strip_left(strip_right(text));
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool inside = i > 0 && i + 1 < text.size() && digit_value(text[i - 1]) < 10 &&
                        digit_value(text[i + 1]) < 10;
    if (text[i] == '_' && inside) continue;
    plain += static_cast<char>(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i]);
  }
  double number = 0;
  if (plain == "inf" || plain == "infinity") {
    number = std::numeric_limits<double>::infinity();
  } else if (plain == "nan") {
    number = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (plain.empty() || !(digit_value(plain[0]) < 10 || plain[0] == '.')) return std::nullopt;
    const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), number);
    if (end != plain.data() + plain.size()) return std::nullopt;
    if (error == std::errc::result_out_of_range) {
      number = std::strtod(plain.c_str(), nullptr);  // Infinity, or what is left near zero.
    } else if (error != std::errc()) {
      return std::nullopt;
    }
  }
  return negative ? -number : number;
}

}  // namespace weir::jinja
