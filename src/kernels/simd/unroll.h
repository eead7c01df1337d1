// Loops that are unrolled before the compiler decides which arrays live in registers: g++ keeps an
// array of accumulators on the stack unless all its indices are constants from the start.
//
// The templates of this folder are included by files with ISA flags, so they obey the rule of
// ops.h. What depends on the ISA is a template over its Vec, whose name has the ISA in it; the rest
// is always inlined: no function compiled with ISA flags can reach a file without them.
#pragma once

namespace weir::kernels::simd {

template <int I>
struct Index {
  static constexpr int value = I;
  [[gnu::always_inline]] constexpr operator int() const { return I; }
};

// f(Index<0>{}), ..., f(Index<N - 1>{}). Give `f` __attribute__((always_inline)).
template <int N, class F>
[[gnu::always_inline]] inline void unroll(const F& f) {
  if constexpr (N > 0) {
    unroll<N - 1>(f);
    f(Index<N - 1>{});
  }
}

[[gnu::always_inline]] constexpr int min(int a, int b) { return a < b ? a : b; }
[[gnu::always_inline]] constexpr int max(int a, int b) { return a > b ? a : b; }

}  // namespace weir::kernels::simd
