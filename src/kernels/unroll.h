// repeat<N>(f): f(Index<0>), f(Index<1>), ... unrolled before anything else looks at the code.
//
// An array of accumulators lives in registers only if every index into it is a constant when the
// compiler splits arrays into scalars; loops unrolled later leave it on the stack (g++ 12: 10 to
// 50 % of a kernel's speed). Everything here is inlined always and instantiated on closure types
// of the including file, so files with different ISA flags share no symbol.
#pragma once

#define WEIR_INLINE inline __attribute__((always_inline))
#define WEIR_INLINE_LAMBDA __attribute__((always_inline))

namespace weir::kernels {

template <int kValue>
struct Index {
  static constexpr int value = kValue;
  [[gnu::always_inline]] constexpr operator int() const { return kValue; }
};

template <int kCount, class F>
WEIR_INLINE void repeat(const F& f) {
  if constexpr (kCount > 0) {
    repeat<kCount - 1>(f);
    f(Index<kCount - 1>{});
  }
}

}  // namespace weir::kernels
