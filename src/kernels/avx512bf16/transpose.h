// Sixteen vectors of 16 words, turned.
//
// For files of avx512bf16/ and amx/: everything is inlined.
#pragma once

#include <immintrin.h>

#include "kernels/unroll.h"

namespace weir::kernels::avx512bf16 {

// Lane c of rows[i] to lane i of rows[c].
WEIR_INLINE void transpose16(__m512i* rows) {
  __m512i t[16];
  repeat<8>([&](auto i) WEIR_INLINE_LAMBDA {
    t[2 * i.value] = _mm512_unpacklo_epi32(rows[2 * i.value], rows[2 * i.value + 1]);
    t[2 * i.value + 1] = _mm512_unpackhi_epi32(rows[2 * i.value], rows[2 * i.value + 1]);
  });
  // rows[4 q + d]: columns d, d + 4, d + 8, d + 12 of rows 4 q to 4 q + 3, 128 bits each.
  repeat<4>([&](auto q) WEIR_INLINE_LAMBDA {
    constexpr int k = 4 * q.value;
    rows[k] = _mm512_unpacklo_epi64(t[k], t[k + 2]);
    rows[k + 1] = _mm512_unpackhi_epi64(t[k], t[k + 2]);
    rows[k + 2] = _mm512_unpacklo_epi64(t[k + 1], t[k + 3]);
    rows[k + 3] = _mm512_unpackhi_epi64(t[k + 1], t[k + 3]);
  });
  repeat<4>([&](auto d) WEIR_INLINE_LAMBDA {
    constexpr int k = d.value;
    t[k] = _mm512_shuffle_i32x4(rows[k], rows[k + 4], 0x88);      // Columns d, d + 8
    t[k + 4] = _mm512_shuffle_i32x4(rows[k], rows[k + 4], 0xdd);  // and d + 4, d + 12.
    t[k + 8] = _mm512_shuffle_i32x4(rows[k + 8], rows[k + 12], 0x88);
    t[k + 12] = _mm512_shuffle_i32x4(rows[k + 8], rows[k + 12], 0xdd);
  });
  repeat<4>([&](auto d) WEIR_INLINE_LAMBDA {
    constexpr int k = d.value;
    rows[k] = _mm512_shuffle_i32x4(t[k], t[k + 8], 0x88);
    rows[k + 8] = _mm512_shuffle_i32x4(t[k], t[k + 8], 0xdd);
    rows[k + 4] = _mm512_shuffle_i32x4(t[k + 4], t[k + 12], 0x88);
    rows[k + 12] = _mm512_shuffle_i32x4(t[k + 4], t[k + 12], 0xdd);
  });
}

}  // namespace weir::kernels::avx512bf16
