// add_low_rank, of vectors whose lanes are columns of the result: a block of B is one stream, the
// numbers of t are broadcast, and no sum crosses lanes. Four rows of t share what is loaded of B.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "kernels/unroll.h"

namespace weir::kernels::simd {

inline constexpr int kLowRankRows = 4;

template <class V>
WEIR_INLINE typename V::Float load_factor(const LowRank& b, int64_t i) {
  return b.type == FloatType::kBF16 ? V::load_bf16(static_cast<const uint16_t*>(b.blocks) + i)
                                    : V::load(static_cast<const float*>(b.blocks) + i);
}

// Some rows by one block, of which `columns` are the range's. `first`: the block's first number.
template <class V, int kRows>
void add_block(const LowRank& b, int64_t first, const float* t, int64_t t_stride, float* y,
               int64_t y_stride, int32_t columns) {
  constexpr int kVecs = kBlockRows / V::kLanes;
  typename V::Float sum[kRows * kVecs];
  repeat<kRows * kVecs>([&](auto i) WEIR_INLINE_LAMBDA { sum[i.value] = V::zero(); });
  for (int32_t r = 0; r < b.rank; ++r, first += kBlockRows) {
    typename V::Float factor[kVecs];
    repeat<kVecs>([&](auto v) WEIR_INLINE_LAMBDA {
      factor[v.value] = load_factor<V>(b, first + v.value * V::kLanes);
    });
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      const typename V::Float by = V::broadcast(t[m.value * t_stride + r]);
      repeat<kVecs>([&](auto v) WEIR_INLINE_LAMBDA {
        typename V::Float& s = sum[m.value * kVecs + v.value];
        s = V::fma(by, factor[v.value], s);
      });
    });
  }
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    repeat<kVecs>([&](auto v) WEIR_INLINE_LAMBDA {
      float* at = y + m.value * y_stride + v.value * V::kLanes;
      const typename V::Float s = sum[m.value * kVecs + v.value];
      const int32_t left = columns - v.value * V::kLanes;
      if (left >= V::kLanes)
        V::store(at, V::load(at) + s);
      else if (left > 0)
        V::store(at, V::load(at, V::first(left)) + s, V::first(left));
    });
  });
}

template <class V>
void add_low_rank(const LowRank& b, const float* t, int64_t t_stride, const GemmRange& range) {
  using Add = void (*)(const LowRank&, int64_t, const float*, int64_t, float*, int64_t, int32_t);
  static constexpr Add kAdd[kLowRankRows + 1] = {nullptr, add_block<V, 1>, add_block<V, 2>,
                                                 add_block<V, 3>, add_block<V, 4>};
  for (int32_t column = range.begin; column < range.end; column += kBlockRows) {
    const int64_t first = int64_t{column} * b.rank;
    const int32_t columns = range.end - column < kBlockRows ? range.end - column : kBlockRows;
    for (int32_t m = 0; m < range.rows; m += kLowRankRows) {
      const int32_t rows = range.rows - m < kLowRankRows ? range.rows - m : kLowRankRows;
      kAdd[rows](b, first, t + m * t_stride, t_stride, range.y + m * range.y_stride + column,
                 range.y_stride, columns);
    }
  }
}

}  // namespace weir::kernels::simd
