// What fuzz targets of picture formats have in common: any bytes give a picture within the limits,
// or an error of one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "media/image/decoders.h"
#include "media/image/exif.h"

namespace weir::media {

template <class Decoder>
void check_decoder(Decoder decode, const uint8_t* data, size_t size) {
  ImageLimits limits;
  limits.pixels_max = 1 << 16;  // Many small pictures find more than few large ones.
  Result<Decoded> decoded = decode({reinterpret_cast<const char*>(data), size}, limits);
  if (!decoded) {
    CHECK(!decoded.error().message.empty());
    for (const char c : decoded.error().message) CHECK(c != '\n' && c != '\0');
    return;
  }
  const Image& image = decoded->image;
  CHECK(image.width >= 1 && image.height >= 1);
  CHECK(int64_t{image.width} * image.height <= limits.pixels_max);
  CHECK(image.rgb.size() == 3 * size_t(image.width) * size_t(image.height));
  CHECK(decoded->orientation >= 1 && decoded->orientation <= 8);
  const size_t bytes = image.rgb.size();
  CHECK(upright(std::move(decoded->image), decoded->orientation).rgb.size() == bytes);
}

}  // namespace weir::media
