// Times of the steady clock as numbers of seconds.
//
// Threads: any.
#pragma once

#include <chrono>

namespace weir {

inline double seconds_of(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return seconds_of(std::chrono::steady_clock::now() - begin);
}

}  // namespace weir
