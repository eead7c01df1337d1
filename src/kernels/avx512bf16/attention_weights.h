// Scores of 16 queries become weights: exponentials, running maxima, running sums.
//
// For files of avx512bf16/ and amx/: everything is inlined or a template.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/avx512bf16/attention_panel.h"
#include "kernels/isa.h"

namespace weir::kernels::avx512bf16 {

// Tokens between two looks at the maxima. Scores and weights of 32 queries over two stretches, the
// queries and their sums together stay below the 48 KiB of L1.
inline constexpr int kStretch = 128;
inline constexpr int kStretchVectors = kStretch / kLanes;
inline constexpr int kStretchPages = kStretch / kPageTokens;

inline constexpr float kLog2E = 1.44269504088896341f;
// Below this a power of two is denormal, and slow.
inline constexpr float kExponentMin = -126.0f;

// 2^x, to 1.4e-4 and exact for whole x: a weight is rounded to 2e-3. The fraction's power is a
// polynomial (least largest relative error on [0, 1] of those that are 1 and 2 at its ends); scalef
// takes the whole part itself. NaN becomes the least power.
WEIR_INLINE __m512 exp2(__mmask16 lanes, __m512 x) {
  const __m512 clamped = _mm512_max_ps(x, _mm512_set1_ps(kExponentMin));
  const __m512 f = _mm512_reduce_ps(clamped, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  __m512 p = _mm512_set1_ps(0.0798622284f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.2241377716f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.696f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0f));
  return _mm512_maskz_scalef_ps(lanes, p, clamped);
}

// Tokens [begin, end) of 16, relative to the first.
WEIR_INLINE __mmask16 lanes_between(int32_t begin, int32_t end) {
  const uint32_t below_end = end >= kLanes ? 0xffffu : end <= 0 ? 0 : (1u << end) - 1;
  const uint32_t below_begin = begin >= kLanes ? 0xffffu : begin <= 0 ? 0 : (1u << begin) - 1;
  return static_cast<__mmask16>(below_end & ~below_begin);
}

// The largest lane of x[r] at lane r: a tree that halves the vectors at each level.
WEIR_INLINE __m512 largest_of_each(const __m512 (&x)[kTileRows]) {
  __m512 pairs[8], fours[4];
  // Rows j, j + 4, j + 8, j + 12 meet in fours[j], each in a quarter of it, so that the last two
  // levels, which work within quarters, leave row r at lane r.
  repeat<8>([&](auto i) WEIR_INLINE_LAMBDA {
    constexpr int at = i.value / 2 + i.value % 2 * 8;
    const __m512 a = x[at], b = x[at + 4];
    pairs[i.value] =
        _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
  });
  repeat<4>([&](auto i) WEIR_INLINE_LAMBDA {
    const __m512 a = pairs[2 * i.value], b = pairs[2 * i.value + 1];
    fours[i.value] =
        _mm512_max_ps(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xdd));
  });
  const auto halve = [](__m512 a, __m512 b) WEIR_INLINE_LAMBDA {
    return _mm512_max_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  };
  const __m512 even = halve(fours[0], fours[2]), odd = halve(fours[1], fours[3]);
  return halve(even, odd);
}

// 16 queries, or fewer, over a stretch of tokens.
struct WeighRows {
  const float* scores;   // [16][kStretch].
  uint16_t* weights;     // Likewise.
  const int32_t* begin;  // The tokens that each sees, relative to the stretch.
  const int32_t* end;
  float* max;  // [16] so far, in units of log2(e).
  float* sum;  // [16][16]: of the weights, by token % 16.
  int32_t count;
};

// Writes what the sums so far must be multiplied by, rescale[16]; true if any is not 1. kWhole:
// every query sees all of the stretch.
template <bool kWhole>
WEIR_INLINE bool weigh_rows(float factor, const WeighRows& rows, float* rescale) {
  const auto lanes_of = [&](int32_t r, int v) WEIR_INLINE_LAMBDA {
    return kWhole ? __mmask16{0xffff}
                  : lanes_between(rows.begin[r] - v * kLanes, rows.end[r] - v * kLanes);
  };
  __m512 tops[kTileRows];
  repeat<kTileRows>([&](auto r) WEIR_INLINE_LAMBDA {
    const float* score = rows.scores + r.value * kStretch;
    __m512 top = _mm512_set1_ps(-__builtin_inff());
    repeat<kStretchVectors>([&](auto v) WEIR_INLINE_LAMBDA {
      top = _mm512_mask_max_ps(top, lanes_of(r.value, v.value), top,
                               _mm512_load_ps(score + v.value * kLanes));
    });
    tops[r.value] = top;
  });
  const __m512 before = _mm512_load_ps(rows.max);
  const __m512 highest = _mm512_mul_ps(largest_of_each(tops), _mm512_set1_ps(factor));
  const __m512 max = _mm512_max_ps(highest, before);
  const __m512 scales = exp2(0xffff, _mm512_sub_ps(before, max));
  const auto counted = static_cast<__mmask16>((1u << rows.count) - 1);
  const __mmask16 risen = _mm512_mask_cmp_ps_mask(counted, max, before, _CMP_NEQ_OQ);
  const __m512 one = _mm512_set1_ps(1.0f);
  _mm512_store_ps(rows.max, max);
  _mm512_store_ps(rescale, _mm512_mask_mov_ps(one, risen, scales));

  for (int32_t r = 0; r < rows.count; ++r) {
    const float* score = rows.scores + r * kStretch;
    uint16_t* weight = rows.weights + r * kStretch;
    const __m512 scale = _mm512_set1_ps(factor), top = _mm512_set1_ps(rows.max[r]);
    __m512 sum = _mm512_mul_ps(_mm512_load_ps(rows.sum + r * kLanes), _mm512_set1_ps(rescale[r]));
    repeat<kStretchVectors / 2>([&](auto pair) WEIR_INLINE_LAMBDA {
      const auto weights_of = [&](int v) WEIR_INLINE_LAMBDA {
        return exp2(lanes_of(r, v),
                    _mm512_fmsub_ps(_mm512_load_ps(score + v * kLanes), scale, top));
      };
      const __m512 low = weights_of(2 * pair.value), high = weights_of(2 * pair.value + 1);
      sum = _mm512_add_ps(sum, _mm512_add_ps(low, high));
      _mm512_store_si512(weight + 2 * pair.value * kLanes,
                         reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
    });
    _mm512_store_ps(rows.sum + r * kLanes, sum);
  }
  return risen != 0;
}

// What rows have summed up so far, of `dims` numbers each, a multiple of kLanes, for their new
// maximum.
WEIR_INLINE void rescale_sums(float* sums, int64_t dims, const float* rescale) {
  for (int32_t i = 0; i < kTileRows; ++i, sums += dims) {
    if (rescale[i] == 1) continue;
    const __m512 by = _mm512_set1_ps(rescale[i]);
    for (int64_t d = 0; d < dims; d += kLanes)
      _mm512_store_ps(sums + d, _mm512_mul_ps(_mm512_load_ps(sums + d), by));
  }
}

}  // namespace weir::kernels::avx512bf16
