// What one block of 16 columns needs besides its words, widened once and used by all row tiles.
//
// For files of avx512/ and amx/; everything is inlined, see unroll.h.
#pragma once

#include <immintrin.h>

#include "kernels/ops.h"
#include "kernels/quant_layout.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx512 {

// The integer dot product comes out of the accumulator as a float without a conversion, which on
// Intel costs a slot of the same two ports as the dot itself: an accumulator that starts at the
// bits of 1.5 * 2^23 ends as the bits of the float 1.5 * 2^23 + dot, since |dot| <= 128 * 255 * 128
// < 2^22. Then round(dot * sw) = fma(1.5 * 2^23 + dot, sw, -1.5 * 2^23 * sw) exactly, where the
// last term is exact: true for f16 and bf16 scales (11 and 8 significant bits, 1.5 adds one or
// two), not for f32 scales, and only if it does not overflow.
inline constexpr float kMagic = 12582912.0f;
inline constexpr int32_t kMagicBits = 0x4b400000;
// A scale below this keeps kMagic * scale finite.
inline constexpr float kMagicScaleMax = 0x1p+100f;

// One group of a block: what a tile's epilogue multiplies by where it uses kMagic.
struct GroupScales {
  float scale[kBlockRows];
  float minus_magic[kBlockRows];  // -kMagic * scale
  float bias[kBlockRows];
};

// 16 stored floats.
WEIR_INLINE __m512 widen16(FloatType type, const uint8_t* at) {
  switch (type) {
    case FloatType::kF16:
      return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
    case FloatType::kBF16:
      return _mm512_castsi512_ps(_mm512_slli_epi32(
          _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))), 16));
    default:
      return _mm512_loadu_ps(at);
  }
}

WEIR_INLINE int32_t float_bytes(FloatType type) { return float_type_bytes(type); }

// 16 float8 e4m3, each divided by kFloat8Unit: as f16 they are that, denormals included.
WEIR_INLINE __m512 widen_e4m3(__m128i bytes) {
  // The sign is in bits 15 and 14 after the shift.
  const __m256i x = _mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 7);
  return _mm512_cvtph_ps(_mm256_and_si256(x, _mm256_set1_epi16(static_cast<int16_t>(0xbfff))));
}

// Widens the scales of one block; returns whether its tiles may use kMagic. REQUIRES: they are
// plain, of f16 or bf16.
WEIR_INLINE bool widen_scales(const QuantMatrix& w, const uint8_t* scales, GroupScales* panel) {
  const int32_t groups = w.k / w.group;
  const int32_t line = kBlockRows * float_bytes(w.scale_type);
  const int64_t next_block = block_scale_bytes(w);
  __m512 largest = _mm512_setzero_ps();
  for (int32_t g = 0; g < groups; ++g, scales += 2 * line) {
    _mm_prefetch(reinterpret_cast<const char*>(scales + next_block), _MM_HINT_T1);
    const __m512 scale = widen16(w.scale_type, scales);
    largest = _mm512_max_ps(largest, _mm512_abs_ps(scale));
    _mm512_store_ps(panel[g].scale, scale);
    _mm512_store_ps(panel[g].minus_magic, _mm512_mul_ps(scale, _mm512_set1_ps(-kMagic)));
    _mm512_store_ps(panel[g].bias, widen16(w.scale_type, scales + line));
  }
  const __mmask16 small = _mm512_cmp_ps_mask(largest, _mm512_set1_ps(kMagicScaleMax), _CMP_LT_OQ);
  return small == 0xffff;
}

// Lanes of block `column / 16` that lie before `end`.
WEIR_INLINE __mmask16 column_mask(int32_t column, int32_t end) {
  return end - column >= kBlockRows ? 0xffff : static_cast<__mmask16>((1u << (end - column)) - 1);
}

// The q of an indexed range's rows copied side by side, so that tiles may address them by a stride.
WEIR_INLINE void gather_rows(const int8_t* q, const int32_t* index, int32_t rows, int64_t k,
                             int8_t* out) {
  for (int32_t m = 0; m < rows; ++m, out += k) {
    const int8_t* from = q + index[m] * k;
    for (int64_t i = 0; i < k; i += 32)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
  }
}

}  // namespace weir::kernels::avx512
