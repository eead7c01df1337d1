#include "media/processor/tile_grid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace weir::media {

TileGrid nearest_grid(Size image, Size tile, int tiles_min, int tiles_max) {
  const double aspect = static_cast<double>(image.width) / static_cast<double>(image.height);
  TileGrid best;
  double best_distance = std::numeric_limits<double>::infinity();
  // By number of tiles, and of one number the narrow grids first: of equals a later one can win.
  for (int tiles = tiles_min; tiles <= tiles_max; ++tiles) {
    for (int columns = 1; columns <= tiles; ++columns) {
      if (tiles % columns != 0) continue;
      const TileGrid grid = {columns, tiles / columns};
      const double distance = std::abs(aspect - static_cast<double>(grid.columns) / grid.rows);
      const bool half_full =
          static_cast<double>(image.pixels()) > 0.5 * static_cast<double>(tile.pixels() * tiles);
      if (distance < best_distance || (distance == best_distance && half_full)) {
        best = grid;
        best_distance = distance;
      }
    }
  }
  return best;
}

TileGrid best_canvas(Size image, int tile, int tiles_max, bool largest) {
  // In the order in which the reference lists them, which decides between equals: most tiles first,
  // flat grids before tall ones, and grids of one shape together.
  std::vector<TileGrid> grids;
  const auto same_shape = [](const TileGrid& a, const TileGrid& b) {
    return a.columns * b.rows == b.columns * a.rows;
  };
  for (int tiles = tiles_max; tiles > 0; --tiles) {
    for (int rows = 1; rows <= tiles; ++rows) {
      if (tiles % rows != 0) continue;
      const TileGrid grid = {tiles / rows, rows};
      const auto last = std::find_if(grids.rbegin(), grids.rend(),
                                     [&](const TileGrid& other) { return same_shape(grid, other); });
      grids.insert(last == grids.rend() ? grids.end() : last.base(), grid);
    }
  }
  const auto scale = [&](const TileGrid& grid) {  // In single precision, as the reference.
    return std::min(static_cast<float>(grid.columns * tile) / static_cast<float>(image.width),
                    static_cast<float>(grid.rows * tile) / static_cast<float>(image.height));
  };
  const auto better = [&](const TileGrid& a, const TileGrid& b) {
    const float left = scale(a), right = scale(b);
    if (left == right) return a.tiles() < b.tiles();
    if (left >= 1 && right >= 1) return largest ? left > right : left < right;
    return left > right;
  };
  TileGrid best = grids.front();
  for (const TileGrid& grid : grids)
    if (better(grid, best)) best = grid;
  return best;
}

}  // namespace weir::media
