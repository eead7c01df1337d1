#include "media/resize/resize.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "media/resize/weights.h"

namespace weir::media {
namespace {

uint8_t to_byte(int32_t sum, int bits) {
  return static_cast<uint8_t>(std::clamp(sum >> bits, 0, 255));
}

Image resize_rows(const Image& image, int width, Filter filter, Arithmetic arithmetic) {
  const AxisWeights axis(image.width, width, filter, arithmetic);
  const int32_t half = 1 << (axis.bits() - 1);
  Image out(width, image.height);
  for (int y = 0; y < out.height; ++y) {
    uint8_t* to = out.row(y);
    for (int x = 0; x < width; ++x, to += 3) {
      const uint8_t* from = image.row(y) + 3 * static_cast<size_t>(axis.first(x));
      int32_t red = half, green = half, blue = half;
      for (const int32_t weight : axis.weights(x)) {
        red += from[0] * weight;
        green += from[1] * weight;
        blue += from[2] * weight;
        from += 3;
      }
      to[0] = to_byte(red, axis.bits());
      to[1] = to_byte(green, axis.bits());
      to[2] = to_byte(blue, axis.bits());
    }
  }
  return out;
}

Image resize_columns(const Image& image, int height, Filter filter, Arithmetic arithmetic) {
  const AxisWeights axis(image.height, height, filter, arithmetic);
  const size_t bytes = 3 * static_cast<size_t>(image.width);
  Image out(image.width, height);
  std::vector<int32_t> sums(bytes);
  for (int y = 0; y < height; ++y) {
    std::ranges::fill(sums, 1 << (axis.bits() - 1));
    const uint8_t* from = image.row(axis.first(y));
    for (const int32_t weight : axis.weights(y)) {
      for (size_t i = 0; i < bytes; ++i) sums[i] += from[i] * weight;
      from += bytes;
    }
    uint8_t* to = out.row(y);
    for (size_t i = 0; i < bytes; ++i) to[i] = to_byte(sums[i], axis.bits());
  }
  return out;
}

// For each pixel of `to`, the nearest of `from`: Pillow takes the one that holds its centre and adds
// up steps, torchvision the one that holds its left edge and multiplies.
std::vector<int> nearest(int from, int to, Arithmetic arithmetic) {
  std::vector<int> places;
  const double step = static_cast<double>(from) / to;
  double at = step * 0.5;
  for (int i = 0; i < to; ++i, at += step) {
    const int place = arithmetic == Arithmetic::kPillow
                          ? static_cast<int>(at)
                          : static_cast<int>(static_cast<float>(i) * static_cast<float>(step));
    places.push_back(std::min(place, from - 1));
  }
  return places;
}

Image resize_nearest(const Image& image, int width, int height, Arithmetic arithmetic) {
  const std::vector<int> columns = nearest(image.width, width, arithmetic);
  const std::vector<int> rows = nearest(image.height, height, arithmetic);
  Image out(width, height);
  for (int y = 0; y < height; ++y) {
    const uint8_t* from = image.row(rows[static_cast<size_t>(y)]);
    uint8_t* to = out.row(y);
    for (const int column : columns) {
      std::memcpy(to, from + 3 * static_cast<size_t>(column), 3);
      to += 3;
    }
  }
  return out;
}

}  // namespace

Image resize(const Image& image, int width, int height, Filter filter, Arithmetic arithmetic) {
  if (filter == Filter::kNearest) return resize_nearest(image, width, height, arithmetic);
  const bool rows = width != image.width, columns = height != image.height;
  if (!rows && !columns) return image;
  if (!rows) return resize_columns(image, height, filter, arithmetic);
  if (!columns) return resize_rows(image, width, filter, arithmetic);
  // The order shows in the bytes between the passes. Rows first, but for a picture that gets wider
  // and lower, where the Pillow of the recorded answers begins with the columns.
  if (arithmetic == Arithmetic::kPillow && width > image.width && height < image.height)
    return resize_rows(resize_columns(image, height, filter, arithmetic), width, filter, arithmetic);
  return resize_columns(resize_rows(image, width, filter, arithmetic), height, filter, arithmetic);
}

}  // namespace weir::media
