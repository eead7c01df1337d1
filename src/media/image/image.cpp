#include "media/image/image.h"

#include <algorithm>

namespace weir::media {

Image crop(const Image& image, int left, int top, int width, int height) {
  Image part(width, height);
  const int first_x = std::max(0, -left), end_x = std::min(width, image.width - left);
  const int first_y = std::max(0, -top), end_y = std::min(height, image.height - top);
  if (first_x >= end_x) return part;
  for (int y = first_y; y < end_y; ++y)
    std::copy_n(image.row(top + y) + 3 * static_cast<size_t>(left + first_x),
                3 * static_cast<size_t>(end_x - first_x),
                part.row(y) + 3 * static_cast<size_t>(first_x));
  return part;
}

}  // namespace weir::media
