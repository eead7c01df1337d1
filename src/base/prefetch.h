// Asks for memory before it is needed, for walks over more objects than the near caches hold.
#pragma once

#include <cstddef>

namespace weir {

// A hint: any address is allowed, nothing is read.
inline void prefetch(const void* address, size_t bytes = 1) {
  constexpr size_t kLineBytes = 64;
  const char* const begin = static_cast<const char*>(address);
  for (size_t i = 0; i < bytes; i += kLineBytes) __builtin_prefetch(begin + i);
}

}  // namespace weir
