// Case of ASCII letters, whatever the locale: protocols fold those and nothing else.
//
// Threads: pure functions.
#pragma once

#include <algorithm>
#include <string_view>

namespace weir {

constexpr char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

// REQUIRES: `lower_case` has no upper-case letters.
inline bool equals_ignoring_case(std::string_view text, std::string_view lower_case) {
  return std::ranges::equal(text, lower_case, {}, ascii_lower);
}

// REQUIRES: `lower_prefix` has no upper-case letters.
inline bool starts_with_ignoring_case(std::string_view text, std::string_view lower_prefix) {
  return equals_ignoring_case(text.substr(0, lower_prefix.size()), lower_prefix);
}

}  // namespace weir
