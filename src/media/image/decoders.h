// One function a format, for decode_image() and the fuzz targets: the pixels as they lie in the
// file, and how they are to be turned.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "media/image/decode.h"
#include "media/image/image.h"

namespace weir::media {

struct Decoded {
  Image image{};
  int orientation = 1;  // Of EXIF, from 1 to 8 (exif.h).
};

Result<Decoded> decode_png(std::string_view bytes, const ImageLimits& limits);
Result<Decoded> decode_jpeg(std::string_view bytes, const ImageLimits& limits);
Result<Decoded> decode_webp(std::string_view bytes, const ImageLimits& limits);
Result<Decoded> decode_gif(std::string_view bytes, const ImageLimits& limits);
Result<Decoded> decode_bmp(std::string_view bytes, const ImageLimits& limits);

// For those functions: whether a picture of this size, which its header states, may be decoded.
Result<void> check_size(ImageFormat format, int64_t width, int64_t height,
                        const ImageLimits& limits);
// "the PNG is damaged: WHAT"; kInvalid.
tl::unexpected<Error> damaged(ImageFormat format, std::string_view what);

}  // namespace weir::media
