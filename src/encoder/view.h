// View: a picture, or a tile of one, as a tower sees it: a grid of patches, of which each has a
// row; or a sound, whose grid is one column of moments.
//
// Threads: plain data.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::encoder {

struct View {
  const float* numbers = nullptr;  // Of its pixels, or frames.
  int32_t height = 0, width = 0;   // Of its grid.
  int32_t beyond = 0;              // Frames after those of the grid that may be read: silence.
  // Rows come by blocks of block x block patches; within one, and from block to block, by rows.
  int32_t block = 1;
  // Blocks come by windows of window x window patches, smaller ones at the right and lower edge; 0:
  // the grid is one window. REQUIRES: a multiple of `block`; no rows beside those of the grid.
  int32_t window = 0;
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
    const Window in = window_of_row(i);
    i -= in.begin;
    const int32_t of_block = block * block, inner = i % of_block, outer = i / of_block;
    const int32_t across = in.width / block;
    return {in.top + outer / across * block + inner / block,
            in.left + outer % across * block + inner % block};
  }
  int32_t row_at(int32_t y, int32_t x) const {
    const Window in = window_at(y, x);
    y -= in.top;
    x -= in.left;
    const int32_t outer = y / block * (in.width / block) + x / block;
    return grid_begin() + in.begin + outer * block * block + y % block * block + x % block;
  }
  // Which row of the grid follows the window that its i-th one is in.
  int32_t window_end(int32_t i) const {
    const Window in = window_of_row(i);
    return in.begin + in.height * in.width;
  }
  // The row that lies where the i-th one does, were there no windows: so a processor's numbers
  // come.
  int32_t without_windows(int32_t i) const {
    if (window == 0) return i;
    View plain = *this;
    plain.window = 0;
    const Place place = place_of(i);
    return plain.row_at(place.y, place.x) - grid_begin();
  }

 private:
  struct Window {
    int32_t top = 0, left = 0;
    int32_t height = 0, width = 0;
    int32_t begin = 0;  // Its first row, of the grid's.
  };

  int32_t window_height() const { return window == 0 ? height : window; }
  int32_t window_width() const { return window == 0 ? width : window; }
  Window window_at(int32_t y, int32_t x) const {
    Window in = {.top = y / window_height() * window_height(),
                 .left = x / window_width() * window_width()};
    in.height = std::min(window_height(), height - in.top);
    in.width = std::min(window_width(), width - in.left);
    in.begin = in.top * width + in.left * in.height;
    return in;
  }
  Window window_of_row(int32_t i) const {
    const int32_t top = i / (window_height() * width) * window_height();
    const int32_t tall = std::min(window_height(), height - top);
    return window_at(top, (i - top * width) / (window_width() * tall) * window_width());
  }
};

}  // namespace weir::encoder
