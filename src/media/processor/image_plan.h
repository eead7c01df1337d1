// ImagePlan: what becomes of a picture of a given size: the sizes it gets, the views it is cut into,
// the rows of features. Known from the size alone, so that a prompt can be counted, and refused,
// before a pixel is touched.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "media/processor/processor.h"
#include "media/processor/sizes.h"
#include "media/processor/tile_grid.h"

namespace weir::media {

struct ImagePlan {
  std::vector<Size> resizes{};  // One after another.
  int64_t left = 0;  // Where the canvas begins in what they give; outside of that it is black.
  int64_t top = 0;
  Size canvas{};
  TileGrid grid{};  // The canvas is cut into as many equal views,
  Size whole{};     // and the whole picture in this size is the last one, if there is any.
  bool whole_of_canvas = false;  // It is made of the canvas rather than of the picture as it was.

  Size tile() const { return {canvas.width / grid.columns, canvas.height / grid.rows}; }
  bool has_whole() const { return whole.pixels() > 0; }
  int64_t views() const { return grid.tiles() + (has_whole() ? 1 : 0); }
};

// What one image becomes has at most this many pixels; 16.8 million are the most that published
// files ask for (Qwen3-VL). The bound holds against files that ask for more.
inline constexpr int64_t kViewPixelsMax = int64_t{1} << 25;

// kInvalid for a picture that is too elongated for the processor; kTooLarge where a step would have
// more than kViewPixelsMax pixels.
Result<ImagePlan> plan_image(const Processor& processor, Size image);

// kInvalid where a view would be larger than view_pixels_max(): a side is at least a unit, so that an
// elongated picture may exceed a small budget of pixels.
Result<void> check_views(const Processor& processor, Size image, const ImagePlan& plan);

// Pixels of the largest view that plan_image() asks for.
int64_t view_pixels_max(const Processor& processor);

// Rows of features of one view: whole tokens across and down.
Size token_grid(const Processor& processor, Size view);
// Of all views.
int64_t token_count(const Processor& processor, const ImagePlan& plan);

}  // namespace weir::media
