// add_low_rank, of vectors whose lanes are columns of the result: a block of B is one stream, the
// numbers of t are broadcast, and no sum crosses lanes. Rows of t share what is loaded of B, as many
// as their four sums have registers.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "kernels/unroll.h"

namespace weir::kernels::simd {

inline constexpr int kLowRankSums = 4;
// 32 registers bear 16 sums beside what is loaded, 16 bear 8.
template <class V>
inline constexpr int kLowRankRows = V::kLanes == kBlockRows ? 4 : 1;

template <class V>
WEIR_INLINE typename V::Float load_factor(const LowRank& b, int64_t i) {
  return b.type == FloatType::kBF16 ? V::load_bf16(static_cast<const uint16_t*>(b.blocks) + i)
                                    : V::load(static_cast<const float*>(b.blocks) + i);
}

// A rank's part of some rows by one block; sums are [rows][kLowRankSums][vectors of a block], of
// which this is sum `kSum`. `i`: the rank's first number in the block.
template <class V, int kRows, int kSum>
WEIR_INLINE void add_rank(const LowRank& b, int64_t i, const float* t, int64_t t_stride,
                          typename V::Float* sums) {
  constexpr int kVecs = kBlockRows / V::kLanes;
  typename V::Float factor[kVecs];
  repeat<kVecs>([&](auto v) WEIR_INLINE_LAMBDA {
    factor[v.value] = load_factor<V>(b, i + v.value * V::kLanes);
  });
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    const typename V::Float by = V::broadcast(t[m.value * t_stride]);
    repeat<kVecs>([&](auto v) WEIR_INLINE_LAMBDA {
      typename V::Float& s = sums[(m.value * kLowRankSums + kSum) * kVecs + v.value];
      s = V::fma(by, factor[v.value], s);
    });
  });
}

// Some rows by one block, of which `columns` are the range's. `i`: the block's first number.
template <class V, int kRows>
void add_block(const LowRank& b, int64_t i, const float* t, int64_t t_stride, float* y,
               int64_t y_stride, int32_t columns) {
  constexpr int kVecs = kBlockRows / V::kLanes;
  constexpr int kAll = kRows * kLowRankSums * kVecs;
  typename V::Float sums[kAll];
  repeat<kAll>([&](auto at) WEIR_INLINE_LAMBDA { sums[at.value] = V::zero(); });
  int32_t r = 0;
  for (; r + kLowRankSums <= b.rank; r += kLowRankSums, i += kLowRankSums * kBlockRows)
    repeat<kLowRankSums>([&](auto p) WEIR_INLINE_LAMBDA {
      add_rank<V, kRows, p.value>(b, i + p.value * kBlockRows, t + r + p.value, t_stride, sums);
    });
  repeat<kLowRankSums>([&](auto p) WEIR_INLINE_LAMBDA {
    if (r + p.value < b.rank)
      add_rank<V, kRows, p.value>(b, i + p.value * kBlockRows, t + r + p.value, t_stride, sums);
  });
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    repeat<kVecs>([&](auto v) WEIR_INLINE_LAMBDA {
      float* at = y + m.value * y_stride + v.value * V::kLanes;
      const typename V::Float* s = sums + m.value * kLowRankSums * kVecs + v.value;
      const typename V::Float sum = (s[0] + s[kVecs]) + (s[2 * kVecs] + s[3 * kVecs]);
      const int32_t left = columns - v.value * V::kLanes;
      if (left >= V::kLanes)
        V::store(at, V::load(at) + sum);
      else if (left > 0)
        V::store(at, V::load(at, V::first(left)) + sum, V::first(left));
    });
  });
}

template <class V>
void add_low_rank(const LowRank& b, const float* t, int64_t t_stride, const GemmRange& range) {
  using Add = void (*)(const LowRank&, int64_t, const float*, int64_t, float*, int64_t, int32_t);
  static constexpr Add kAdd[5] = {nullptr, add_block<V, 1>, add_block<V, 2>, add_block<V, 3>,
                                  add_block<V, 4>};
  constexpr int kMost = kLowRankRows<V>;
  for (int32_t column = range.begin; column < range.end; column += kBlockRows) {
    const int64_t first = int64_t{column} * b.rank;
    const int32_t columns = range.end - column < kBlockRows ? range.end - column : kBlockRows;
    for (int32_t m = 0; m < range.rows; m += kMost) {
      const int32_t rows = range.rows - m < kMost ? range.rows - m : kMost;
      kAdd[rows](b, first, t + m * t_stride, t_stride, range.y + m * range.y_stride + column,
                 range.y_stride, columns);
    }
  }
}

}  // namespace weir::kernels::simd
