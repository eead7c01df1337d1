// Vec: a vector of 8 floats in AVX2 with FMA and F16C, with the operations that kernels/simd/ is
// written in. Floats have the compiler's own + - * /. For comments see avx512/vec.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/unroll.h"

namespace weir::kernels::avx2 {

struct Vec {
  static constexpr int kLanes = 8;
  using Float = __m256;
  struct All {};
  struct Mask {
    __m256i lanes;  // All bits or none.
  };

  // 16 registers.
  static constexpr int decode_key_vecs(int group) { return group <= 2 ? 4 : group <= 6 ? 2 : 1; }
  static constexpr int decode_value_vecs(int group) { return group <= 2 ? 4 : group <= 6 ? 2 : 1; }
  static constexpr int kTileRows = 6;
  static constexpr int kKeyVecs = 2;
  static constexpr int kValueRows = 6;
  static constexpr int kValueVecs = 2;
  static constexpr int kFloat8Rows = 3;
  static constexpr int kFloat8Accumulators = 8;
  static constexpr int kFloat8PanelRows = 4;

  static Mask first(int n) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return {_mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane)};
  }
  static Mask range(int begin, int end) {
    return {_mm256_andnot_si256(first(begin).lanes, first(end).lanes)};
  }

  static Float zero() { return _mm256_setzero_ps(); }
  static Float broadcast(float x) { return _mm256_set1_ps(x); }
  static Float load(const float* p, All = {}) { return _mm256_loadu_ps(p); }
  static Float load(const float* p, Mask m) { return _mm256_maskload_ps(p, m.lanes); }
  static Float load(const uint16_t* p, All = {}) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  // AVX2 has no masked load of 16-bit lanes.
  static Float load(const uint16_t* p, Mask m) {
    const auto lanes = static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(m.lanes)));
    alignas(16) uint16_t halves[kLanes] = {};
    for (int i = 0; i < kLanes; ++i)
      if ((lanes >> i & 1) != 0) halves[i] = p[i];
    return load(halves);
  }
  static Float load_bf16(const uint16_t* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  // 16 of them.
  static void load_float8(const uint8_t* p, Float& low, Float& high) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m256i x = _mm256_slli_epi16(_mm256_cvtepi8_epi16(bytes), 7);
    const __m256i halves = _mm256_and_si256(x, _mm256_set1_epi16(static_cast<int16_t>(0xbfff)));
    low = _mm256_cvtph_ps(_mm256_castsi256_si128(halves));
    high = _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1));
  }
  static void store(float* p, Float x, All = {}) { _mm256_storeu_ps(p, x); }
  static void store(float* p, Float x, Mask m) { _mm256_maskstore_ps(p, m.lanes, x); }
  static void store(uint16_t* p, Float x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  }

  static Float fma(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  static Float fnma(Float a, Float b, Float c) { return _mm256_fnmadd_ps(a, b, c); }
  static Float min(Float a, Float b) { return _mm256_min_ps(a, b); }
  static Float max(Float a, Float b) { return _mm256_max_ps(a, b); }
  static Float round(Float x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Float abs(Float x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
  static Float sqrt(Float x) { return _mm256_sqrt_ps(x); }
  static Float scale2(Float x, Float n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
  }
  static Float keep(Mask m, Float x) { return _mm256_and_ps(_mm256_castsi256_ps(m.lanes), x); }
  static Float keep(All, Float x) { return x; }
  static Float select(Mask m, Float yes, Float no) {
    return _mm256_blendv_ps(no, yes, _mm256_castsi256_ps(m.lanes));
  }
  static Float select(All, Float yes, Float) { return yes; }

  static Mask greater(Float a, Float b) {
    return {_mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GT_OQ))};
  }
  static Mask not_less(Float a, Float b) {
    return {_mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_NLT_UQ))};
  }
  static uint32_t equal_bits(Float a, Float b) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)));
  }

  static float sum(Float x) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
  }
  static float largest(Float x) {
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
  }

  static void transpose(Float (&rows)[kLanes]) {
    Float fours[kLanes];
    repeat<2>([&](auto b) __attribute__((always_inline)) {
      const Float* r = rows + 4 * b;
      const Float low0 = _mm256_unpacklo_ps(r[0], r[1]), high0 = _mm256_unpackhi_ps(r[0], r[1]);
      const Float low1 = _mm256_unpacklo_ps(r[2], r[3]), high1 = _mm256_unpackhi_ps(r[2], r[3]);
      fours[4 * b] = _mm256_shuffle_ps(low0, low1, 0x44);
      fours[4 * b + 1] = _mm256_shuffle_ps(low0, low1, 0xee);
      fours[4 * b + 2] = _mm256_shuffle_ps(high0, high1, 0x44);
      fours[4 * b + 3] = _mm256_shuffle_ps(high0, high1, 0xee);
    });
    repeat<4>([&](auto j) __attribute__((always_inline)) {
      rows[j] = _mm256_permute2f128_ps(fours[j], fours[4 + j], 0x20);
      rows[4 + j] = _mm256_permute2f128_ps(fours[j], fours[4 + j], 0x31);
    });
  }

  // 4 floats, or the first `n` of them.
  static Float load_twice(const float* p, int n) {
    const __m128i lane = _mm_setr_epi32(0, 1, 2, 3);
    const __m128 x = _mm_maskload_ps(p, _mm_cmpgt_epi32(_mm_set1_epi32(n), lane));
    const __m256i order = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(x), order);
  }
  static Float swap_pairs(Float x) { return _mm256_permute_ps(x, 0xb1); }
  static Float fma_alternate(Float a, Float b, Float c) { return _mm256_fmaddsub_ps(a, b, c); }
};

}  // namespace weir::kernels::avx2
