// Bytes: 32 of them, as 8 lanes of 32 bits. For comments see avx512/bytes.h. Products are made of
// words, two of a lane at a time: vpmaddubsw's sums of bytes would saturate.
#pragma once

#include "kernels/avx2/vec.h"

namespace weir::kernels::avx2 {

struct Bytes {
  using Int = __m256i;
  struct Unsigned {
    Int even, odd;  // Bytes 0 and 2 of a lane, and 1 and 3, as words.
  };
  struct Signed {
    Int even, odd;
  };
  static constexpr int kKeyVecs = 1;
  static constexpr int kAccumulators = 6;

  static Int zero() { return _mm256_setzero_si256(); }
  static Int load(const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static void store(uint8_t* p, Int x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x); }
  static Int all(int x) { return _mm256_set1_epi32(x); }
  static Int all_bytes(int x) { return _mm256_set1_epi8(static_cast<char>(x)); }
  static Int add(Int a, Int b) { return _mm256_add_epi32(a, b); }
  static Int subtract(Int a, Int b) { return _mm256_sub_epi32(a, b); }
  static Int both(Int a, Int b) { return _mm256_and_si256(a, b); }
  static Int either(Int a, Int b) { return _mm256_or_si256(a, b); }
  template <int kBits>
  static Int left(Int x) {
    return _mm256_slli_epi32(x, kBits);
  }
  template <int kBits>
  static Int right(Int x) {
    return _mm256_srli_epi32(x, kBits);
  }
  template <int kBits>
  static Int right_signed(Int x) {
    return _mm256_srai_epi32(x, kBits);
  }
  static Int table(const uint8_t* p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static Int lookup(Int table, Int index) { return _mm256_shuffle_epi8(table, index); }

  static Unsigned as_unsigned(Int x) {
    return {_mm256_and_si256(x, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(x, 8)};
  }
  static Signed as_signed(Int x) {
    return {_mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8), _mm256_srai_epi16(x, 8)};
  }
  static Unsigned broadcast_unsigned(const uint8_t* p) { return as_unsigned(four(p)); }
  static Signed broadcast_signed(const uint8_t* p) { return as_signed(four(p)); }
  static Int dot(Int sum, Unsigned a, Signed b) {
    return add(add(sum, _mm256_madd_epi16(a.even, b.even)), _mm256_madd_epi16(a.odd, b.odd));
  }

  static Vec::Float to_float(Int x) { return _mm256_cvtepi32_ps(x); }
  static Int to_int(Vec::Float x) { return _mm256_cvtps_epi32(x); }
  static void store_low(uint8_t* p, Int x) {
    const Int order = _mm256_set1_epi32(0x0c080400);
    const Int bytes = _mm256_shuffle_epi8(x, order);
    const int32_t low = _mm256_extract_epi32(bytes, 0), high = _mm256_extract_epi32(bytes, 4);
    __builtin_memcpy(p, &low, 4);
    __builtin_memcpy(p + 4, &high, 4);
  }
  static Vec::Float load_signed(const uint8_t* p) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static int sum(Int x) {
    __m128i four = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
  }

  template <int kStep>
  static Vec::Float butterfly(Vec::Float x) {
    Vec::Float other;
    if constexpr (kStep == 0) other = _mm256_permute_ps(x, 0xb1);
    if constexpr (kStep == 1) other = _mm256_permute_ps(x, 0x4e);
    if constexpr (kStep == 2) other = _mm256_permute2f128_ps(x, x, 0x01);
    constexpr int kSecond[] = {0xaa, 0xcc, 0xf0};
    return _mm256_blend_ps(x + other, other - x, kSecond[kStep]);
  }

 private:
  static Int four(const uint8_t* p) {
    int32_t bits;
    __builtin_memcpy(&bits, p, 4);
    return _mm256_set1_epi32(bits);
  }
};

}  // namespace weir::kernels::avx2
