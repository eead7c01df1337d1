#include "media/processor/image_plan.h"

#include <algorithm>
#include <string>

#include "base/concat.h"

namespace weir::media {
namespace {

ImagePlan one_view(Size size) {
  ImagePlan plan;
  plan.resizes = {size};
  plan.canvas = size;
  return plan;
}

int64_t floor_half(int64_t difference) { return difference >> 1; }

ImagePlan shortest_edge(const Processor& processor, Size image) {
  const Size size = with_shortest_edge(image, processor.edge);
  ImagePlan plan = one_view(size);
  plan.canvas = {processor.width, processor.height};
  plan.left = floor_half(size.width - plan.canvas.width);
  plan.top = floor_half(size.height - plan.canvas.height);
  return plan;
}

// Tiles are square here. Without tiles the picture is made square too.
ImagePlan tiles_of_edge(const Processor& processor, Size image) {
  const Size tile = {processor.width, processor.height};
  const Size first = with_longest_edge(image, processor.edge);
  if (!processor.tiles) {
    ImagePlan plan = one_view(tile);
    plan.resizes = {first, tile};
    return plan;
  }
  const Size size = whole_tiles(first, processor.width);
  ImagePlan plan = one_view(size);
  plan.resizes = {first, size};
  plan.grid = {static_cast<int>(size.width / tile.width),
               static_cast<int>(size.height / tile.height)};
  if (plan.grid.tiles() > 1) {
    plan.whole = tile;
    plan.whole_of_canvas = true;
  }
  return plan;
}

ImagePlan grid_of_tiles(const Processor& processor, TileGrid grid, Size whole) {
  ImagePlan plan =
      one_view({grid.columns * int64_t{processor.width}, grid.rows * int64_t{processor.height}});
  plan.grid = grid;
  if (processor.whole && grid.tiles() > 1) plan.whole = whole;
  return plan;
}

ImagePlan tiles_by_shape(const Processor& processor, Size image) {
  const Size tile = {processor.width, processor.height};
  const TileGrid grid = nearest_grid(image, tile, processor.tiles_min, processor.tiles_max);
  return grid_of_tiles(processor, grid, tile);
}

ImagePlan tiles_if_large(const Processor& processor, Size image) {
  const Size whole =
      within_tokens(image, processor.unit, processor.pixels_min, processor.pixels_max);
  // The reference lets a side be half a token here, and nowhere else.
  const Size rounded = rounded_to(image, processor.unit, processor.patch);
  const double large = static_cast<double>(processor.pixels_max) * processor.large_from;
  if (!processor.tiles || static_cast<double>(rounded.pixels()) <= large) return one_view(whole);
  const Size tile = {processor.width, processor.height};
  return grid_of_tiles(
      processor, nearest_grid(image, tile, processor.tiles_min, processor.tiles_max), whole);
}

ImagePlan tiles_of_canvas(const Processor& processor, Size image) {
  const Size tile = {processor.width, processor.height};
  const TileGrid grid =
      best_canvas(image, processor.width, processor.tiles_max, processor.largest_canvas);
  ImagePlan plan = grid_of_tiles(processor, grid, tile);
  // A small picture is not enlarged beyond one tile, or what it is already.
  Size box = plan.canvas;
  if (!processor.largest_canvas)
    box = {std::min(std::max(image.width, tile.width), box.width),
           std::min(std::max(image.height, tile.height), box.height)};
  plan.resizes = {without_distortion(image, box)};
  return plan;
}

Result<ImagePlan> plan_sizes(const Processor& processor, Size image) {
  switch (processor.sizing) {
    case Sizing::kFixed:
      break;
    case Sizing::kShortestEdge:
      return shortest_edge(processor, image);
    case Sizing::kLongestEdge:
      return one_view(within_edge(image, processor.edge, processor.unit));
    case Sizing::kPixelBudget:
      return within_pixels(image, processor.unit, processor.pixels_min, processor.pixels_max)
          .map(one_view);
    case Sizing::kFrameBudget:
      return within_frame_pixels(image, processor.frames, processor.frames, processor.unit,
                                 processor.pixels_min, processor.pixels_max)
          .map(one_view);
    case Sizing::kPatchBudget:
      return one_view(filling_pixels(image, processor.unit, processor.pixels_max));
    case Sizing::kTilesOfEdge:
      return tiles_of_edge(processor, image);
    case Sizing::kTilesByShape:
      return tiles_by_shape(processor, image);
    case Sizing::kTilesIfLarge:
      return tiles_if_large(processor, image);
    case Sizing::kTilesOfCanvas:
      return tiles_of_canvas(processor, image);
  }
  return one_view({processor.width, processor.height});
}

Result<void> check_step(Size image, Size step) {
  if (step.width <= kViewPixelsMax / std::max<int64_t>(1, step.height)) return {};
  return fail(ErrorCode::kTooLarge,
              concat({"an image of ", std::to_string(image.width), " x ",
                      std::to_string(image.height), " pixels would become one of ",
                      std::to_string(step.width), " x ", std::to_string(step.height),
                      " for this model; at most ", std::to_string(kViewPixelsMax),
                      " pixels are computed"}));
}

}  // namespace

Result<ImagePlan> plan_image(const Processor& processor, Size image) {
  WEIR_ASSIGN(ImagePlan plan, plan_sizes(processor, image));
  for (const Size step : plan.resizes) WEIR_TRY(check_step(image, step));
  WEIR_TRY(check_step(image, plan.canvas));
  WEIR_TRY(check_step(image, plan.whole));
  WEIR_TRY(check_views(processor, image, plan));
  return plan;
}

Result<void> check_views(const Processor& processor, Size image, const ImagePlan& plan) {
  const int64_t most = view_pixels_max(processor);
  for (const Size view : {plan.tile(), plan.whole})
    if (view.pixels() > most)
      return fail(ErrorCode::kInvalid,
                  concat({"an image of ", std::to_string(image.width), " x ",
                          std::to_string(image.height), " pixels would become one of ",
                          std::to_string(view.width), " x ", std::to_string(view.height),
                          " for this model, which takes at most ", std::to_string(most),
                          " pixels; expected a less elongated image"}));
  return {};
}

int64_t view_pixels_max(const Processor& processor) {
  const int64_t fixed = int64_t{processor.width} * processor.height;
  switch (processor.sizing) {
    case Sizing::kFixed:
    case Sizing::kShortestEdge:
    case Sizing::kTilesOfEdge:
    case Sizing::kTilesByShape:
    case Sizing::kTilesOfCanvas:
      return std::min(fixed, kViewPixelsMax);
    case Sizing::kLongestEdge: {
      const int64_t side = (processor.edge + processor.unit - 1) / processor.unit * processor.unit;
      return std::min(side * side, kViewPixelsMax);
    }
    case Sizing::kPixelBudget:
    case Sizing::kFrameBudget:
    case Sizing::kPatchBudget:
    case Sizing::kTilesIfLarge:
      break;
  }
  const VideoRules& video = processor.video;
  const int64_t frame = video.together ? video.pixels_max / processor.frames : video.pixels_max;
  return std::min(std::max({processor.pixels_max, fixed, frame}), kViewPixelsMax);
}

Size token_grid(const Processor& processor, Size view) {
  return {view.width / processor.unit, view.height / processor.unit};
}

int64_t token_count(const Processor& processor, const ImagePlan& plan) {
  return plan.grid.tiles() * token_grid(processor, plan.tile()).pixels() +
         token_grid(processor, plan.whole).pixels();
}

}  // namespace weir::media
