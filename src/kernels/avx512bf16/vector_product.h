// The product of bf16 (product.h) by vectors, for processors with four vector pipes of which two
// multiply (AMD): a product of bf16 takes twice what one of float32 does.
//
// For files of avx512bf16/; everything is inlined or a template.
#pragma once

#include <immintrin.h>

#include "kernels/avx512bf16/product.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx512bf16 {

struct VectorTiles {};

WEIR_INLINE __m512bh as_bf16(__m512i bits) { return reinterpret_cast<__m512bh>(bits); }

template <int kUsedTiles, int kUsedColumns>
WEIR_INLINE void run_product(VectorTiles&, const Product& p) {
  constexpr int kVector = 16;
  // Rows at a time: with two tiles of columns 16 sums, enough for two products a cycle; as many
  // with one.
  constexpr int kRows = 16 / kUsedColumns;
  static_assert(kTileRows % kRows == 0);
  for (int64_t row = 0; row < kUsedTiles * kTileRows; row += kRows) {
    const uint8_t* x = reinterpret_cast<const uint8_t*>(p.x) + row * p.x_stride;
    const auto y = [&](auto m, auto b) WEIR_INLINE_LAMBDA {
      return reinterpret_cast<float*>(reinterpret_cast<uint8_t*>(p.y[b]) +
                                      (row + m) * p.y_stride[b]);
    };
    __m512 sums[kRows][kUsedColumns];
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      repeat<kUsedColumns>([&](auto b) WEIR_INLINE_LAMBDA {
        sums[m][b] = p.resume ? _mm512_load_ps(y(m, b)) : _mm512_setzero_ps();
      });
    });
    for (int32_t step = 0; step < p.steps; ++step, x += 2 * kStep) {
      const uint16_t* panel = p.panel + step * p.panel_step;
      const int pairs = kStep / 2 - (step + 1 == p.steps ? p.spare_pairs : 0);
      for (int pair = 0; pair < pairs; ++pair, panel += 2 * kVector) {
        __m512bh columns[kUsedColumns];
        repeat<kUsedColumns>([&](auto b) WEIR_INLINE_LAMBDA {
          columns[b] = as_bf16(_mm512_load_si512(panel + b * p.panel_tile));
        });
        repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
          int32_t two;
          __builtin_memcpy(&two, x + m * p.x_stride + 4 * pair, sizeof two);
          const __m512bh both = as_bf16(_mm512_set1_epi32(two));
          repeat<kUsedColumns>([&](auto b) WEIR_INLINE_LAMBDA {
            sums[m][b] = _mm512_dpbf16_ps(sums[m][b], columns[b], both);
          });
        });
      }
    }
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      repeat<kUsedColumns>([&](auto b)
                               WEIR_INLINE_LAMBDA { _mm512_store_ps(y(m, b), sums[m][b]); });
    });
  }
}

}  // namespace weir::kernels::avx512bf16
