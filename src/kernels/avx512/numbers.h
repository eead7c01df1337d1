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

// The bits of kMask of each byte of `x`, the others of `rest`.
template <int kMask>
WEIR_INLINE __m512i select(__m512i x, __m512i rest) {
  return _mm512_ternarylogic_epi32(_mm512_set1_epi8(static_cast<char>(kMask)), x, rest, 0xca);
}

// The even and the odd elements of an eighth.
struct Eighth {
  __m512i even, odd;
};

// Eighth kEighth of the 32 elements that begin at `step`. Planes are brought to where their bits
// belong for both halves at once: even ones 4 places below, and what that shift carries into the
// low nibble of another byte is not selected.
template <Numbers kNumbers, int kEighth>
WEIR_INLINE Eighth load_eighth(const uint8_t* step, __m512i table) {
  constexpr int e = kEighth;
  const auto line = [&](int i) WEIR_INLINE_LAMBDA { return _mm512_load_si512(step + 64 * i); };
  const auto bytes = [](int mask)
                         WEIR_INLINE_LAMBDA { return _mm512_set1_epi8(static_cast<char>(mask)); };
  if constexpr (kNumbers == Numbers::kEight) {
    return {line(2 * e), line(2 * e + 1)};
  } else if constexpr (kNumbers == Numbers::kTwo || kNumbers == Numbers::kThree) {
    constexpr bool kThird = kNumbers == Numbers::kThree;
    __m512i nibbles = move_bit<2 * (e % 2), 0>(line(e / 2));
    if constexpr (kThird) nibbles = select<0x33>(nibbles, move_bit<e, 2>(line(2)));
    const __m512i mask = bytes(kThird ? 7 : 3);
    return {_mm512_and_si512(nibbles, mask), _mm512_and_si512(_mm512_srli_epi32(nibbles, 4), mask)};
  } else if constexpr (kNumbers == Numbers::kFive || kNumbers == Numbers::kSix) {
    const __m512i low = line(e);
    const __m512i high =
        kNumbers == Numbers::kFive
            ? _mm512_and_si512(move_bit<e, 0>(line(4)), bytes(0x11))
            : _mm512_and_si512(move_bit<2 * (e % 2), 0>(line(4 + e / 2)), bytes(0x33));
    return {select<15>(low, _mm512_slli_epi32(high, 4)),
            select<15>(_mm512_srli_epi32(low, 4), high)};
  } else {
    const __m512i even = _mm512_and_si512(line(e), bytes(15));
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(line(e), 4), bytes(15));
    if constexpr (kNumbers == Numbers::kFour) return {even, odd};
    return {_mm512_shuffle_epi8(table, even), _mm512_shuffle_epi8(table, odd)};
  }
}

}  // namespace weir::kernels::avx512
