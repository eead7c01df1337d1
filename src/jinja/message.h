// message(): error messages put together from parts.
//
// Threads: pure function.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace weir::jinja {

template <class... Parts>
std::string message(const Parts&... parts) {
  std::string out;
  for (const std::string_view part : std::initializer_list<std::string_view>{parts...}) out += part;
  return out;
}

}  // namespace weir::jinja
