// The numbers of a packed block (quant_layout.h) as bytes in registers: what dot products take.
//
// For files of avx512/; everything is inlined, see unroll.h.
#pragma once

#include <immintrin.h>

#include "kernels/ops.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx512 {

// How a block's numbers are stored: bits, or 4 bits by which a table is looked up.
enum class Numbers : uint8_t { kTwo, kThree, kFour, kTable, kFive, kSix, kEight };

WEIR_INLINE Numbers numbers_of(const QuantMatrix& w) {
  if (w.grid != Grid::kUniform) return Numbers::kTable;
  switch (w.bits) {
    case 2:
      return Numbers::kTwo;
    case 3:
      return Numbers::kThree;
    case 4:
      return Numbers::kFour;
    case 5:
      return Numbers::kFive;
    case 6:
      return Numbers::kSix;
    default:
      return Numbers::kEight;
  }
}

template <Numbers kNumbers>
inline constexpr int kStepBytes = 64 * (kNumbers == Numbers::kTwo     ? 2
                                        : kNumbers == Numbers::kThree ? 3
                                        : kNumbers == Numbers::kFive  ? 5
                                        : kNumbers == Numbers::kSix   ? 6
                                        : kNumbers == Numbers::kEight ? 8
                                                                      : 4);

// A grid's values as bytes without a sign, in each 16 bytes.
WEIR_INLINE __m512i byte_table(Grid grid) {
  alignas(16) uint8_t bytes[16];
  for (int i = 0; i < 16; ++i)
    bytes[i] = static_cast<uint8_t>(grid == Grid::kIq4    ? kIq4Values[i] + kIq4Shift
                                    : grid == Grid::kE2m1 ? kE2m1Values[i] + kE2m1Shift
                                                          : i);
  return _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)));
}

// Bit kFrom of each byte to bit kTo; what crosses into other bytes is for the caller to mask.
template <int kFrom, int kTo>
WEIR_INLINE __m512i move_bit(__m512i x) {
  if constexpr (kTo > kFrom) return _mm512_slli_epi32(x, kTo - kFrom);
  if constexpr (kTo < kFrom) return _mm512_srli_epi32(x, kFrom - kTo);
  return x;
}

// Elements of the 32 that begin at `step`: quad 2 e is the even ones of eighth e, 2 e + 1 the odd
// ones.
template <Numbers kNumbers, int kQuad>
WEIR_INLINE __m512i quad(const uint8_t* step, __m512i table) {
  constexpr int e = kQuad / 2, odd = kQuad % 2;
  const auto line = [&](int i) WEIR_INLINE_LAMBDA { return _mm512_load_si512(step + 64 * i); };
  if constexpr (kNumbers == Numbers::kEight) {
    return line(kQuad);
  } else if constexpr (kNumbers == Numbers::kTwo || kNumbers == Numbers::kThree) {
    const __m512i low =
        _mm512_and_si512(move_bit<2 * (e % 2) + 4 * odd, 0>(line(e / 2)), _mm512_set1_epi8(3));
    if constexpr (kNumbers == Numbers::kTwo) return low;
    return _mm512_ternarylogic_epi32(move_bit<e + 4 * odd, 2>(line(2)), _mm512_set1_epi8(4), low,
                                     0xea);
  } else {
    const __m512i low = _mm512_and_si512(move_bit<4 * odd, 0>(line(e)), _mm512_set1_epi8(15));
    if constexpr (kNumbers == Numbers::kTable) return _mm512_shuffle_epi8(table, low);
    if constexpr (kNumbers == Numbers::kFive)
      return _mm512_ternarylogic_epi32(move_bit<e + 4 * odd, 4>(line(4)), _mm512_set1_epi8(16), low,
                                       0xea);
    if constexpr (kNumbers == Numbers::kSix)
      return _mm512_ternarylogic_epi32(move_bit<2 * (e % 2) + 4 * odd, 4>(line(4 + e / 2)),
                                       _mm512_set1_epi8(48), low, 0xea);
    return low;
  }
}

}  // namespace weir::kernels::avx512
