// Bytes: 64 of them, as 16 lanes of 32 bits, for simd/encode_page.h and simd/attend_coded.h.
#pragma once

#include "kernels/avx512/vec.h"

namespace weir::kernels::avx512 {

struct Bytes {
  using Int = __m512i;
  // What `dot` takes of bytes without a sign, and of those with one.
  struct Unsigned {
    Int x;
  };
  struct Signed {
    Int x;
  };
  // Vectors of 16 tokens that a pass over keys takes at once, and accumulators a pass may have.
  static constexpr int kKeyVecs = 2;
  static constexpr int kAccumulators = 16;

  static Int zero() { return _mm512_setzero_si512(); }
  static Int load(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static void store(uint8_t* p, Int x) { _mm512_storeu_si512(p, x); }
  static Int all(int x) { return _mm512_set1_epi32(x); }
  static Int all_bytes(int x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static Int add(Int a, Int b) { return _mm512_add_epi32(a, b); }
  static Int subtract(Int a, Int b) { return _mm512_sub_epi32(a, b); }
  static Int both(Int a, Int b) { return _mm512_and_si512(a, b); }
  static Int either(Int a, Int b) { return _mm512_or_si512(a, b); }
  template <int kBits>
  static Int left(Int x) {
    return _mm512_slli_epi32(x, kBits);
  }
  template <int kBits>
  static Int right(Int x) {
    return _mm512_srli_epi32(x, kBits);
  }
  template <int kBits>
  static Int right_signed(Int x) {
    return _mm512_srai_epi32(x, kBits);
  }
  // A table of 16 bytes, and what it has at indices below 16.
  static Int table(const uint8_t* p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Int lookup(Int table, Int index) { return _mm512_shuffle_epi8(table, index); }

  static Unsigned as_unsigned(Int x) { return {x}; }
  static Signed as_signed(Int x) { return {x}; }
  // Four bytes, in each lane.
  static Unsigned broadcast_unsigned(const uint8_t* p) { return {four(p)}; }
  static Signed broadcast_signed(const uint8_t* p) { return {four(p)}; }
  // sum + the products of a lane's four pairs; exact.
  // (g++ 12 copies the sum before each of its own intrinsics.)
  static Int dot(Int sum, Unsigned a, Signed b) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a.x), "v"(b.x));
    return sum;
  }

  static Vec::Float to_float(Int x) { return _mm512_cvtepi32_ps(x); }
  // Rounded to nearest even.
  static Int to_int(Vec::Float x) { return _mm512_cvtps_epi32(x); }
  // The low byte of each lane.
  static void store_low(uint8_t* p, Int x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(x));
  }
  static Vec::Float load_signed(const uint8_t* p) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static int sum(Int x) { return _mm512_reduce_add_epi32(x); }

  // Step 2^kStep of a Walsh-Hadamard transform within a vector, kStep from 0 to 3: of a pair (a, b)
  // so many lanes apart, (a + b, a - b).
  template <int kStep>
  static Vec::Float butterfly(Vec::Float x) {
    Vec::Float other;
    if constexpr (kStep == 0) other = _mm512_permute_ps(x, 0xb1);
    if constexpr (kStep == 1) other = _mm512_permute_ps(x, 0x4e);
    if constexpr (kStep == 2) other = _mm512_shuffle_f32x4(x, x, 0xb1);
    if constexpr (kStep == 3) other = _mm512_shuffle_f32x4(x, x, 0x4e);
    // other + x, or other - x.
    constexpr __mmask16 kSecond[] = {0xaaaa, 0xcccc, 0xf0f0, 0xff00};
    const Vec::Float sign =
        _mm512_mask_blend_ps(kSecond[kStep], _mm512_set1_ps(1), _mm512_set1_ps(-1));
    return _mm512_fmadd_ps(x, sign, other);
  }

 private:
  static Int four(const uint8_t* p) {
    int32_t bits;
    __builtin_memcpy(&bits, p, 4);
    return _mm512_set1_epi32(bits);
  }
};

}  // namespace weir::kernels::avx512
