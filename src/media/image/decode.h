// From the bytes of a picture's file to an Image: PNG, JPEG, WebP, GIF and BMP.
//
// A file is what its first bytes say, whatever a name or a media type beside it claims. Its header
// is held against the limits before anything is decoded. Of an animation the first picture is
// taken; a picture is turned upright as its EXIF data say; transparency is dropped and the colours
// that the file has below it stay, as the reference processors do it.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "media/image/image.h"

namespace weir::media {

enum class ImageFormat : uint8_t { kPng, kJpeg, kWebp, kGif, kBmp };

const char* format_name(ImageFormat format);

// Which of the formats above the bytes begin as.
std::optional<ImageFormat> format_of(std::string_view bytes);

struct ImageLimits {
  size_t file_bytes_max = size_t{32} << 20;
  // What phones take at most by default (50 megapixels) is within it.
  int64_t pixels_max = int64_t{64} << 20;
  // Asked once the header has said how many pixels there are, before memory is taken for them; its
  // error is decode_image()'s. Empty: all is admitted.
  std::function<Result<void>(int64_t pixels)> admit{};
};

// What decoding takes at most for each pixel, the picture itself among it: a progressive JPEG's
// coefficients (3 components of 2 bytes) or four bytes of a WebP twice (an animation's canvases),
// the pixels as decoded, and those turned upright (3 bytes each).
inline constexpr int64_t kDecodeBytesPerPixel = 8 + 3 + 3;

// Errors: kTooLarge beyond the limits; kMediaType for other formats; kInvalid for a damaged file.
// Each is a sentence that says what was expected and what was found.
Result<Image> decode_image(std::string_view bytes, const ImageLimits& limits);

}  // namespace weir::media
