// Image: a picture as rows of pixels, red, green and blue, a byte each. What decoders give and
// processors take.
//
// Threads: a value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::media {

struct Image {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb{};  // [height, width, 3].

  Image() = default;
  // Black.
  Image(int columns, int rows)
      : width(columns), height(rows), rgb(3 * static_cast<size_t>(columns) * rows) {}

  uint8_t* row(int y) { return rgb.data() + 3 * static_cast<size_t>(width) * y; }
  const uint8_t* row(int y) const { return rgb.data() + 3 * static_cast<size_t>(width) * y; }

  bool operator==(const Image&) const = default;
};

// The `width` x `height` pixels whose first is at (left, top). What lies outside the image is
// black.
Image crop(const Image& image, int left, int top, int width, int height);

}  // namespace weir::media
