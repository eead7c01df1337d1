// Vec: a vector of 16 floats in AVX-512, with the operations that kernels/simd/ is written in.
// Floats have the compiler's own + - * /.
#pragma once

// g++ 12 warns of the undefined vectors within its own intrinsics (GCC bug 105593).
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <cstdint>

#include "kernels/unroll.h"

namespace weir::kernels::avx512 {

struct Vec {
  static constexpr int kLanes = 16;
  using Float = __m512;
  // Which lanes: the first n of a row's last vector, or all.
  struct All {};
  using Mask = __mmask16;

  // Attention's blocking, for 32 registers. Decode: accumulators of `group` heads by vectors of
  // tokens (keys) or dimensions (values), the rest for what is loaded.
  static constexpr int decode_key_vecs(int group) { return group <= 4 ? 4 : 2; }
  static constexpr int decode_value_vecs(int group) { return group <= 6 ? 4 : 2; }
  // Prefill: 12 queries by 2 vectors of tokens, 6 queries by 4 vectors of dimensions: 24
  // accumulators each.
  static constexpr int kTileRows = 12;
  static constexpr int kKeyVecs = 2;
  static constexpr int kValueRows = 6;
  static constexpr int kValueVecs = 4;
  // Products of float8 weights: rows of a tile that widens them itself, and sums that it takes at
  // once; from how many rows on weights are widened once for all tiles.
  static constexpr int kFloat8Rows = 8;
  static constexpr int kFloat8Accumulators = 16;
  static constexpr int kFloat8PanelRows = 33;

  static Mask first(int n) { return static_cast<Mask>((1u << n) - 1); }
  static Mask range(int begin, int end) { return static_cast<Mask>(first(end) & ~first(begin)); }

  static Float zero() { return _mm512_setzero_ps(); }
  static Float broadcast(float x) { return _mm512_set1_ps(x); }
  static Float load(const float* p, All = {}) { return _mm512_loadu_ps(p); }
  static Float load(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  // Halves, widened.
  static Float load(const uint16_t* p, All = {}) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static Float load(const uint16_t* p, Mask m) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, p));
  }
  // The upper halves of floats.
  static Float load_bf16(const uint16_t* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  // 32 float8 e4m3 as halves (kFloat8Unit), widened.
  static void load_float8(const uint8_t* p, Float& low, Float& high) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    // The sign is in bits 15 and 14 after the shift.
    const __m512i x = _mm512_slli_epi16(_mm512_cvtepi8_epi16(bytes), 7);
    const __m512i halves = _mm512_and_si512(x, _mm512_set1_epi16(static_cast<int16_t>(0xbfff)));
    low = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
    high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));
  }
  static void store(float* p, Float x, All = {}) { _mm512_storeu_ps(p, x); }
  static void store(float* p, Float x, Mask m) { _mm512_mask_storeu_ps(p, m, x); }
  // Halves, rounded to nearest even; all lanes.
  static void store(uint16_t* p, Float x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  // a * b + c and c - a * b, rounded once.
  static Float fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  static Float fnma(Float a, Float b, Float c) { return _mm512_fnmadd_ps(a, b, c); }
  // Where either is NaN, `b`.
  static Float min(Float a, Float b) { return _mm512_min_ps(a, b); }
  static Float max(Float a, Float b) { return _mm512_max_ps(a, b); }
  static Float round(Float x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Float abs(Float x) { return _mm512_abs_ps(x); }
  static Float sqrt(Float x) { return _mm512_sqrt_ps(x); }
  // x * 2^n for whole n from -126 to 127.
  static Float scale2(Float x, Float n) { return _mm512_scalef_ps(x, n); }
  static Float keep(Mask m, Float x) { return _mm512_maskz_mov_ps(m, x); }
  static Float keep(All, Float x) { return x; }
  static Float select(Mask m, Float yes, Float no) { return _mm512_mask_blend_ps(m, no, yes); }
  static Float select(All, Float yes, Float) { return yes; }

  // table[whole part of x], for x from 0 to 15; of NaN table[0].
  static Float look_up(const float* table, Float x) {
    return _mm512_permutexvar_ps(_mm512_cvttps_epi32(x), _mm512_load_ps(table));
  }

  // False where either is NaN, except not_less.
  static Mask greater(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
  static Mask not_less(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_NLT_UQ); }
  // Bit i of lane i.
  static uint32_t equal_bits(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }

  // Over all lanes, lane i with i + 8, then i + 4, 2, 1.
  static float sum(Float x) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
  }
  static float largest(Float x) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
  }

  // Lane j of row i becomes lane i of row j.
  static void transpose(Float (&rows)[kLanes]) {
    // Within four rows: quarter q of row 4 b + j is what they have in column 4 q + j.
    Float fours[kLanes];
    repeat<4>([&](auto b) __attribute__((always_inline)) {
      const Float* r = rows + 4 * b;
      const Float low0 = _mm512_unpacklo_ps(r[0], r[1]), high0 = _mm512_unpackhi_ps(r[0], r[1]);
      const Float low1 = _mm512_unpacklo_ps(r[2], r[3]), high1 = _mm512_unpackhi_ps(r[2], r[3]);
      fours[4 * b] = _mm512_shuffle_ps(low0, low1, 0x44);
      fours[4 * b + 1] = _mm512_shuffle_ps(low0, low1, 0xee);
      fours[4 * b + 2] = _mm512_shuffle_ps(high0, high1, 0x44);
      fours[4 * b + 3] = _mm512_shuffle_ps(high0, high1, 0xee);
    });
    // Then the quarters of a column from all rows.
    repeat<4>([&](auto j) __attribute__((always_inline)) {
      const Float even0 = _mm512_shuffle_f32x4(fours[j], fours[4 + j], 0x88);
      const Float even1 = _mm512_shuffle_f32x4(fours[8 + j], fours[12 + j], 0x88);
      const Float odd0 = _mm512_shuffle_f32x4(fours[j], fours[4 + j], 0xdd);
      const Float odd1 = _mm512_shuffle_f32x4(fours[8 + j], fours[12 + j], 0xdd);
      rows[j] = _mm512_shuffle_f32x4(even0, even1, 0x88);
      rows[4 + j] = _mm512_shuffle_f32x4(odd0, odd1, 0x88);
      rows[8 + j] = _mm512_shuffle_f32x4(even0, even1, 0xdd);
      rows[12 + j] = _mm512_shuffle_f32x4(odd0, odd1, 0xdd);
    });
  }

  // p[0], p[0], p[1], p[1], ...: 8 floats, or the first `n` of them.
  static Float load_twice(const float* p, int n) {
    const __m256 x = _mm256_maskz_loadu_ps(static_cast<__mmask8>((1u << n) - 1), p);
    const __m512i order = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(order, _mm512_castps256_ps512(x));
  }
  static Float swap_pairs(Float x) { return _mm512_permute_ps(x, 0xb1); }
  // a * b - c in even lanes, a * b + c in odd ones.
  static Float fma_alternate(Float a, Float b, Float c) { return _mm512_fmaddsub_ps(a, b, c); }
};

}  // namespace weir::kernels::avx512
