// Flags of bench programs that take a whole number: "--batch 8".
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <system_error>

namespace weir::bench {

struct NumberFlag {
  std::string_view name;
  int32_t* value;
};

// Puts the number where the flag of this name wants it. False where there is no such flag, or no
// whole number from 0 on.
inline bool read_number(std::string_view name, std::string_view text,
                        std::initializer_list<NumberFlag> flags) {
  const auto flag =
      std::find_if(flags.begin(), flags.end(), [&](const NumberFlag& f) { return f.name == name; });
  if (flag == flags.end()) return false;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), *flag->value);
  return error == std::errc() && end == text.end() && *flag->value >= 0;
}

}  // namespace weir::bench
