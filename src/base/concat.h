// concat: several texts as one string. In place of chains of operator+, which allocate at each step
// and, where one begins with a literal, make GCC 12 warn of overlaps that cannot be (-Wrestrict).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace weir {

inline std::string concat(std::initializer_list<std::string_view> parts) {
  size_t bytes = 0;
  for (const std::string_view part : parts) bytes += part.size();
  std::string text;
  text.reserve(bytes);
  for (const std::string_view part : parts) text += part;
  return text;
}

}  // namespace weir
