// Flags of bench programs that take a whole number: "--batch 8".
#pragma once

#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <system_error>

namespace weir::bench {

struct NumberFlag {
  std::string_view name;
  int32_t* value;
};

// Flags with their numbers, one after another. False where there is anything else: a flag that is
// not known or has no number, or a number below 0.
inline bool read_numbers(std::span<char* const> arguments,
                         std::initializer_list<NumberFlag> flags) {
  if (arguments.size() % 2 != 0) return false;
  for (; !arguments.empty(); arguments = arguments.subspan(2)) {
    const std::string_view name = arguments[0], text = arguments[1];
    int32_t* value = nullptr;
    for (const NumberFlag& flag : flags)
      if (flag.name == name) value = flag.value;
    if (value == nullptr) return false;
    const auto [end, error] = std::from_chars(text.begin(), text.end(), *value);
    if (error != std::errc() || end != text.end() || *value < 0) return false;
  }
  return true;
}

}  // namespace weir::bench
