// TileGrid: in how many columns and rows of tiles a picture is cut.
//
// Threads: pure functions.
#pragma once

#include "media/processor/sizes.h"

namespace weir::media {

struct TileGrid {
  int columns = 1;
  int rows = 1;

  int tiles() const { return columns * rows; }
  bool operator==(const TileGrid&) const = default;
};

// More tiles than any model has, so that the search below stays short.
inline constexpr int kTilesMax = 64;

// Of the grids of `tiles_min` to `tiles_max` tiles the one whose shape is nearest; of several as near
// the one of most tiles that the picture fills at least by half. REQUIRES: 1 <= min <= max <= kTilesMax.
TileGrid nearest_grid(Size image, Size tile, int tiles_min, int tiles_max);

// Of the grids of up to `tiles_max` tiles of side `tile` the one on which the picture can be shown
// largest when it need not shrink, or `largest`; else the one that shrinks it least, with the
// fewest tiles. Otherwise the smallest on which it need not shrink.
TileGrid best_canvas(Size image, int tile, int tiles_max, bool largest);

}  // namespace weir::media
