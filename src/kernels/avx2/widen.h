// Stored floats to float32, eight at a time; masks of the last few.
//
// For files of avx2/; everything is inlined, see unroll.h.
#pragma once

#include <immintrin.h>

#include "kernels/ops.h"
#include "kernels/quant_layout.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx2 {

WEIR_INLINE int32_t float_bytes(FloatType type) { return float_type_bytes(type); }

// 8 float8 e4m3, each divided by kFloat8Unit: as f16 they are that, denormals included.
WEIR_INLINE __m256 widen_e4m3(__m128i bytes) {
  // The sign is in bits 15 and 14 after the shift.
  const __m128i x = _mm_slli_epi16(_mm_cvtepi8_epi16(bytes), 7);
  return _mm256_cvtph_ps(_mm_and_si128(x, _mm_set1_epi16(static_cast<int16_t>(0xbfff))));
}

template <FloatType kType>
WEIR_INLINE __m256 widen8(const uint8_t* at) {
  if constexpr (kType == FloatType::kF32) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(at));
  } else {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    if constexpr (kType == FloatType::kF16) return _mm256_cvtph_ps(bits);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
}

WEIR_INLINE __m256 widen8(FloatType type, const uint8_t* at) {
  switch (type) {
    case FloatType::kF16:
      return widen8<FloatType::kF16>(at);
    case FloatType::kBF16:
      return widen8<FloatType::kBF16>(at);
    default:
      return widen8<FloatType::kF32>(at);
  }
}

// The first `count` < 8 stored floats at `at`, zeros after them; nothing further is read.
template <FloatType kType>
WEIR_INLINE __m256 widen_some(const uint8_t* at, int32_t count) {
  alignas(32) uint8_t bytes[32] = {};
  __builtin_memcpy(bytes, at, static_cast<uint64_t>(count * float_type_bytes(kType)));
  return widen8<kType>(bytes);
}

// All bits set in the first `count` lanes; any count.
WEIR_INLINE __m256i lanes_below(int32_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

}  // namespace weir::kernels::avx2
