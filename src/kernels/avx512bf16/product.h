// The product that all bf16 kernels are made of: one or two tiles of 16 rows by one or two tiles of
// 16 columns, summed over a stretch of k. Rows are read as they lie, columns from a panel of tiles
// of 32 elements of k by 16 columns, [16 pairs][16 columns][2].
//
// For files of avx512bf16/ and amx/, which have each a run_product() of their own.
#pragma once

#include <cstdint>

namespace weir::kernels::avx512bf16 {

inline constexpr int kTileRows = 16;
inline constexpr int kColumnTiles = 2;     // Of a product.
inline constexpr int kRowTiles = 2;        // Likewise.
inline constexpr int kStep = 32;           // Elements of k in a tile.
inline constexpr int kTileElements = 512;  // Of bf16 in a tile.

struct Product {
  const uint16_t* panel;  // The first column tile's.
  int64_t panel_step;     // Numbers from a step to the next,
  int64_t panel_tile;     // and from a column tile to the next.
  const uint16_t* x;
  int64_t x_stride;  // Bytes, as y_stride.
  int32_t steps;
  int32_t spare_pairs;  // Zeros at the end of the last step, which need not be multiplied.
  bool resume;  // The sums go on from what y holds.
  bool far;     // y lies beyond L1.
  float* y[kColumnTiles];
  int64_t y_stride[kColumnTiles];
};

}  // namespace weir::kernels::avx512bf16
