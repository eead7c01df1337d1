#include "model/operations/describe_sizes.h"

#include <array>
#include <cstdarg>
#include <cstdio>

namespace weir::model {

std::string format(const char* pattern, ...) {
  std::array<char, 256> buffer{};
  va_list args;
  va_start(args, pattern);
  std::vsnprintf(buffer.data(), buffer.size(), pattern, args);
  va_end(args);
  return buffer.data();
}

std::string number(float value) { return format("%g", static_cast<double>(value)); }

}  // namespace weir::model
