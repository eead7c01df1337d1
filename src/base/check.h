// CHECK: an invariant that holds in release builds too. For bugs of ours only; user input never
// reaches one. `assert` is for hot code.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace weir {

[[noreturn]] inline void check_failed(const char* file, int line, const char* what) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, what);
  std::fflush(stderr);
  std::abort();
}

}  // namespace weir

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) ::weir::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)
