// Keys and values of a page as panels of bf16 tiles, which products over them read.
//
// For files of avx512bf16/ and amx/: everything is inlined or a template.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/avx512bf16/product.h"
#include "kernels/isa.h"
#include "kernels/ops.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx512bf16 {

inline constexpr int kLanes = 16;
// Tokens whose panels are made at a time: of 64 dimensions, keys and values are 64 KiB, so they
// stay in L2 beside the queries.
inline constexpr int kBlockTokens = 256;
inline constexpr int kBlockPages = kBlockTokens / kPageTokens;
inline constexpr int32_t kDimsMax = 256;
static_assert(kPageTokens == kStep && kPageTokens == kColumnTiles * kLanes);
// In a block's panel of values, from 16 dimensions to the next.
inline constexpr int64_t kValueTile = int64_t{kBlockPages} * kTileElements;

// 32 elements as bf16, in order.
WEIR_INLINE __m512i round32(const float* x) {
  return reinterpret_cast<__m512i>(
      _mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + kLanes), _mm512_loadu_ps(x)));
}
WEIR_INLINE __m512i round32(const uint16_t* halves) {
  const __m512i both = _mm512_loadu_si512(halves);
  return reinterpret_cast<__m512i>(
      _mm512_cvtne2ps_pbh(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(both, 1)),
                          _mm512_cvtph_ps(_mm512_castsi512_si256(both))));
}

// a[0] b[0] a[1] b[1] ...: rows of two tiles, 16 columns each.
WEIR_INLINE void store_pairs(__m512i a, __m512i b, uint16_t* first, uint16_t* second) {
  const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8,
                                       39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(kLanes));
  _mm512_store_si512(first, _mm512_permutex2var_epi16(a, low, b));
  _mm512_store_si512(second, _mm512_permutex2var_epi16(a, high, b));
}

// keys [k_dim][32] become panel [2 tiles of 16 tokens][k_dim / 32] tiles.
template <class E>
void widen_keys(const E* keys, int32_t k_dim, uint16_t* panel) {
  const int64_t tile = int64_t{k_dim} / kStep * kTileElements;  // From 16 tokens to the next.
  for (int32_t d = 0; d < k_dim; d += 2, keys += 2 * kPageTokens) {
    uint16_t* row = panel + d / kStep * kTileElements + d % kStep / 2 * 32;
    store_pairs(round32(keys), round32(keys + kPageTokens), row, row + tile);
  }
}

// values [tokens][v_dim] become a page, or its begin, of panel [v_dim / 16][page] tiles.
// Tokens outside [first, end) become 0: their weights are, but their bytes may be NaN.
template <class E>
void widen_values(const E* values, int32_t v_dim, int32_t tokens, int32_t first, int32_t end,
                  uint16_t* panel) {
  for (int32_t t = 0; t < tokens; t += 2, values += 2 * v_dim) {
    for (int32_t d = 0; d < v_dim; d += 2 * kLanes) {
      const __m512i none = _mm512_setzero_si512();
      const __m512i a = t >= first && t < end ? round32(values + d) : none;
      const __m512i b = t + 1 >= first && t + 1 < end ? round32(values + v_dim + d) : none;
      uint16_t* row = panel + d / kLanes * kValueTile + t / 2 * 32;
      store_pairs(a, b, row, row + kValueTile);
    }
  }
}

}  // namespace weir::kernels::avx512bf16
