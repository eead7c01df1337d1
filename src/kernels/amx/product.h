// The product of bf16 (avx512bf16/product.h) by tiles: its sums are four of them.
//
// For files of amx/; everything is inlined or a template over Tiles.
#pragma once

#include <cstdint>

#include "kernels/amx/tile.h"
#include "kernels/avx512bf16/product.h"
#include "kernels/ops.h"

namespace weir::kernels::amx {

using avx512bf16::kColumnTiles;
using avx512bf16::kRowTiles;
using avx512bf16::kStep;
using avx512bf16::kTileElements;
using avx512bf16::kTileRows;
using avx512bf16::Product;

// Tile numbers: sums of row tile r and column tile b at 2 r + b; rows; columns.
inline constexpr int kRowOperand = 4, kColumnOperand = 6;

template <int kUsedTiles, int kUsedColumns, class Tiles>
WEIR_INLINE void multiply_step(Tiles& tiles, const Product& p, int32_t step) {
  const auto* x = reinterpret_cast<const uint8_t*>(p.x + step * kStep);
  const uint16_t* panel = p.panel + step * p.panel_step;
  // A load before the product that needs it, the rest after it: the first product starts early.
  tiles.template load<kRowOperand>(x, p.x_stride);
  repeat<kUsedColumns>([&](auto b) WEIR_INLINE_LAMBDA {
    tiles.template load<kColumnOperand + b.value>(panel + b.value * p.panel_tile, 64);
    tiles.template multiply_bf16<b.value, kRowOperand, kColumnOperand + b.value>();
  });
  if constexpr (kUsedTiles == 2) {
    tiles.template load<kRowOperand + 1>(x + kTileRows * p.x_stride, p.x_stride);
    repeat<kUsedColumns>([&](auto b) WEIR_INLINE_LAMBDA {
      tiles.template multiply_bf16<kColumnTiles + b.value, kRowOperand + 1,
                                   kColumnOperand + b.value>();
    });
  }
}

template <int kUsedTiles, int kUsedColumns, class Tiles>
WEIR_INLINE void run_product(Tiles& tiles, const Product& p) {
  const auto each_sum = [&](auto&& f) WEIR_INLINE_LAMBDA {
    repeat<kUsedTiles * kUsedColumns>([&](auto t) WEIR_INLINE_LAMBDA {
      constexpr int r = t.value / kUsedColumns, b = t.value % kUsedColumns;
      f(Index<r * kColumnTiles + b>{},
        reinterpret_cast<uint8_t*>(p.y[b]) + r * kTileRows * p.y_stride[b], p.y_stride[b]);
    });
  };
  if (p.resume)
    each_sum([&](auto t, uint8_t* y, int64_t stride)
                 WEIR_INLINE_LAMBDA { tiles.template load<t.value>(y, stride); });
  else
    each_sum([&](auto t, uint8_t* y, int64_t stride) WEIR_INLINE_LAMBDA {
      tiles.template zero<t.value>();
      if (!p.far) return;
      // It arrives while the products run.
      repeat<kTileRows>([&](auto row)
                            WEIR_INLINE_LAMBDA { __builtin_prefetch(y + row.value * stride, 1); });
    });
  for (int32_t step = 0; step < p.steps; ++step)
    multiply_step<kUsedTiles, kUsedColumns>(tiles, p, step);
  each_sum([&](auto t, uint8_t* y, int64_t stride)
               WEIR_INLINE_LAMBDA { tiles.template store<t.value>(y, stride); });
}

// Shapes for two tiles of rows, of `high` and `low` rows.
WEIR_INLINE constexpr TileShapes shapes_for(int32_t high, int32_t low) {
  TileShapes shapes;
  const int32_t rows[kRowTiles] = {high, low};
  for (int r = 0; r < kRowTiles; ++r) {
    for (int b = 0; b < kColumnTiles; ++b) {
      shapes.rows[r * kColumnTiles + b] = static_cast<uint8_t>(rows[r]);
      shapes.row_bytes[r * kColumnTiles + b] = 64;
    }
    shapes.rows[kRowOperand + r] = static_cast<uint8_t>(rows[r]);
    shapes.row_bytes[kRowOperand + r] = 64;
    shapes.rows[kColumnOperand + r] = kTileRows;
    shapes.row_bytes[kColumnOperand + r] = 64;
  }
  return shapes;
}

// Tiles of full shape throughout, as attention uses them; of either kind.
template <class Kind>
struct AttentionTiles : Kind {
  static constexpr TileShapes kShapes = shapes_for(kTileRows, kTileRows);
  WEIR_INLINE AttentionTiles() : Kind(kShapes) {}
};

}  // namespace weir::kernels::amx
