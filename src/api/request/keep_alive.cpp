#include "api/request/keep_alive.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>

#include "api/request/json_fields.h"

namespace weir::api {

namespace {

struct Unit {
  std::string_view name;
  double seconds;
};

// Of two that begin alike the longer one first.
constexpr auto kUnits = std::to_array<Unit>({{"ns", 1e-9},
                                             {"us", 1e-6},
                                             {"\xc2\xb5s", 1e-6},
                                             {"ms", 1e-3},
                                             {"s", 1},
                                             {"m", 60},
                                             {"h", 3600}});

constexpr double kForEver = -1;
// A hundred years: beyond, a sum of times could overflow.
constexpr double kSecondsMax = 100.0 * 366 * 86400;

// Takes a number off the beginning; nullopt: there is none.
std::optional<double> take_number(std::string_view& text) {
  double number = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::optional<double> take_unit(std::string_view& text) {
  for (const Unit& unit : kUnits) {
    if (!text.starts_with(unit.name)) continue;
    text.remove_prefix(unit.name.size());
    return unit.seconds;
  }
  return std::nullopt;
}

// The length without a sign; nullopt: it is no duration.
std::optional<double> length_of(std::string_view text) {
  double seconds = 0;
  bool first = true;
  while (first || !text.empty()) {
    const auto number = take_number(text);
    if (!number) return std::nullopt;
    if (first && text.empty()) return number;
    const auto unit = take_unit(text);
    if (!unit) return std::nullopt;
    seconds += *number * *unit;
    first = false;
  }
  return seconds;
}

}  // namespace

Result<double> keep_alive_of(std::string_view path, JsonValue value) {
  double number = 0;
  std::string_view text;
  if (is_number(value) && value.get(number) == simdjson::SUCCESS)
    return number < 0 ? kForEver : number;
  if (value.get(text) != simdjson::SUCCESS)
    return wrong_type(path, "a number of seconds or a duration such as \"5m\"", value);
  const std::string given(shown(text));
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto seconds = length_of(text);
  if (!seconds || !std::isfinite(*seconds))
    return out_of_range(path,
                        "expected a duration such as \"5m\" or \"-1\", found \"" + given + "\"");
  return negative && *seconds > 0 ? kForEver : *seconds;
}

int64_t whole_seconds(double seconds) {
  return static_cast<int64_t>(std::ceil(std::min(seconds, kSecondsMax)));
}

}  // namespace weir::api
