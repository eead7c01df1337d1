// View: a picture, or a tile of one, as a tower sees it: a grid of patches, of which each has a
// row.
//
// Threads: plain data.
#pragma once

#include <cstdint>

namespace weir::encoder {

struct View {
  const float* numbers = nullptr;  // Of its pixels.
  int32_t height = 0, width = 0;   // Of its grid.
  // Rows come by blocks of block x block patches; within one, and from block to block, by rows.
  int32_t block = 1;
  int32_t before = 0, after = 0;  // Rows beside those of the grid: a class row.
  int32_t row_begin = 0;          // Of all its rows, among those of other views.

  struct Place {
    int32_t y = 0, x = 0;
  };

  int32_t cells() const { return height * width; }
  int32_t rows() const { return before + cells() + after; }
  int32_t row_end() const { return row_begin + rows(); }
  int32_t grid_begin() const { return row_begin + before; }
  // Where in the grid its i-th row lies, and which row lies there.
  Place place_of(int32_t i) const {
    const int32_t of_block = block * block, inner = i % of_block, outer = i / of_block;
    const int32_t across = width / block;
    return {outer / across * block + inner / block, outer % across * block + inner % block};
  }
  int32_t row_at(int32_t y, int32_t x) const {
    const int32_t outer = y / block * (width / block) + x / block;
    return grid_begin() + outer * block * block + y % block * block + x % block;
  }
};

}  // namespace weir::encoder
