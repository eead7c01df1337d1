#include "media/processor/pixel_values.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/check.h"

namespace weir::media {
namespace {

// To the nearest of bfloat16, halves to even.
float to_bf16(float number) {
  const uint32_t bits = std::bit_cast<uint32_t>(number);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

// What each byte of each colour becomes.
using ByteValues = std::array<std::array<float, 256>, 3>;

ByteValues byte_values(const Processor& processor) {
  ByteValues values{};
  for (size_t c = 0; c < 3; ++c) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const auto number = static_cast<float>(byte);
      const float mean = processor.mean[c], deviation = processor.deviation[c];
      values[c][byte] =
          processor.bf16
              ? to_bf16(to_bf16(to_bf16(number * processor.scale) - to_bf16(mean)) /
                        to_bf16(deviation))
              : (number * processor.scale - mean) / deviation;
    }
  }
  return values;
}

void append_planes(std::vector<float>& out, const ByteValues& values, const Image& view) {
  for (size_t c = 0; c < 3; ++c)
    for (size_t i = c; i < view.rgb.size(); i += 3) out.push_back(values[c][view.rgb[i]]);
}

void append_patches(std::vector<float>& out, const ByteValues& values, const Image& view,
                    int patch) {
  for (int top = 0; top + patch <= view.height; top += patch)
    for (int left = 0; left + patch <= view.width; left += patch)
      for (int y = top; y < top + patch; ++y) {
        const uint8_t* row = view.row(y) + 3 * static_cast<size_t>(left);
        for (int x = 0; x < patch; ++x, row += 3)
          for (size_t c = 0; c < 3; ++c) out.push_back(values[c][row[c]]);
      }
}

// The frames of a patch, of one size.
using Frames = std::span<const Image* const>;

// One patch: colour, frame, row, column.
void append_patch(std::vector<float>& out, const ByteValues& values, Frames frames, int left,
                  int top, int patch) {
  for (size_t c = 0; c < 3; ++c)
    for (const Image* const frame : frames)
      for (int y = top; y < top + patch; ++y)
        for (int x = left; x < left + patch; ++x)
          out.push_back(values[c][frame->row(y)[3 * static_cast<size_t>(x) + c]]);
}

void append_blocks(std::vector<float>& out, const ByteValues& values, Frames frames,
                   const Processor& processor) {
  const Image& view = *frames.front();
  const int patch = processor.patch, block = patch * processor.merge;
  for (int top = 0; top + block <= view.height; top += block)
    for (int left = 0; left + block <= view.width; left += block)
      for (int y = top; y < top + block; y += patch)
        for (int x = left; x < left + block; x += patch)
          append_patch(out, values, frames, x, y, patch);
}

void append_view(PixelValues& out, const Processor& processor, const ByteValues& values,
                 const Image& view) {
  out.views.push_back({view.width, view.height});
  switch (processor.layout) {
    case PixelLayout::kPlanes:
      return append_planes(out.numbers, values, view);
    case PixelLayout::kPatches:
      return append_patches(out.numbers, values, view, processor.patch);
    case PixelLayout::kBlocks:
      return append_blocks(out.numbers, values,
                           std::vector(static_cast<size_t>(processor.frames), &view), processor);
  }
}

Image resized(const Processor& processor, const Image& image, Size size) {
  return resize(image, static_cast<int>(size.width), static_cast<int>(size.height),
                processor.filter, processor.arithmetic);
}

Image cut(const Image& image, int64_t left, int64_t top, Size size) {
  if (left == 0 && top == 0 && size == Size{image.width, image.height}) return image;
  return crop(image, static_cast<int>(left), static_cast<int>(top), static_cast<int>(size.width),
              static_cast<int>(size.height));
}

}  // namespace

PixelValues pixel_values(const Processor& processor, const ImagePlan& plan, const Image& image) {
  CHECK(!plan.resizes.empty());
  Image canvas = resized(processor, image, plan.resizes.front());
  for (size_t i = 1; i < plan.resizes.size(); ++i)
    canvas = resized(processor, canvas, plan.resizes[i]);
  canvas = cut(canvas, plan.left, plan.top, plan.canvas);

  const ByteValues values = byte_values(processor);
  PixelValues out;
  const auto repeated = static_cast<int64_t>(processor.layout == PixelLayout::kBlocks
                                                 ? processor.frames
                                                 : 1);
  out.numbers.reserve(
      static_cast<size_t>(3 * repeated * (plan.canvas.pixels() + plan.whole.pixels())));
  const Size tile = plan.tile();
  for (int row = 0; row < plan.grid.rows; ++row)
    for (int column = 0; column < plan.grid.columns; ++column)
      append_view(out, processor, values,
                  cut(canvas, column * tile.width, row * tile.height, tile));
  if (plan.has_whole())
    append_view(out, processor, values,
                resized(processor, plan.whole_of_canvas ? canvas : image, plan.whole));
  return out;
}

PixelValues moment_values(const Processor& processor, const ImagePlan& plan,
                          std::span<const Image* const> frames) {
  CHECK(processor.layout == PixelLayout::kBlocks && std::ssize(frames) == processor.frames);
  std::vector<Image> canvases;
  for (const Image* const frame : frames)
    canvases.push_back(resized(processor, *frame, plan.canvas));
  std::vector<const Image*> views;
  for (const Image& canvas : canvases) views.push_back(&canvas);
  PixelValues out;
  out.views.push_back(plan.canvas);
  out.numbers.reserve(3 * frames.size() * static_cast<size_t>(plan.canvas.pixels()));
  append_blocks(out.numbers, byte_values(processor), views, processor);
  return out;
}

}  // namespace weir::media
