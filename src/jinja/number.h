// Numbers as text: Python's repr of a float, and what int() and float() accept.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::jinja {

// Shortest digits that read back equal; 1.0, 1e+16, inf, nan.
std::string float_repr(double number);

enum class IntParse : uint8_t { kOk, kMalformed, kTooLarge };
// int(text, base): spaces around, sign, underscores between digits, prefixes where base allows.
IntParse parse_int(std::string_view text, int base, int64_t& number);
// float(text): also inf, infinity, nan.
std::optional<double> parse_float(std::string_view text);

}  // namespace weir::jinja
