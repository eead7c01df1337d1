#include "media/image/decode.h"

#include <array>
#include <limits>
#include <string>
#include <utility>

#include "base/concat.h"
#include "media/first_bytes.h"
#include "media/image/decoders.h"
#include "media/image/exif.h"

namespace weir::media {
namespace {

constexpr const char* kRead = "PNG, JPEG, WebP, GIF and BMP are read";

Result<Decoded> decode(ImageFormat format, std::string_view bytes, const ImageLimits& limits) {
  switch (format) {
    case ImageFormat::kPng:
      return decode_png(bytes, limits);
    case ImageFormat::kJpeg:
      return decode_jpeg(bytes, limits);
    case ImageFormat::kWebp:
      return decode_webp(bytes, limits);
    case ImageFormat::kGif:
      return decode_gif(bytes, limits);
    case ImageFormat::kBmp:
      break;
  }
  return decode_bmp(bytes, limits);
}

}  // namespace

const char* format_name(ImageFormat format) {
  constexpr std::array kNames = {"PNG", "JPEG", "WebP", "GIF", "BMP"};
  return kNames[static_cast<size_t>(format)];
}

std::optional<ImageFormat> format_of(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::kPng;
  if (bytes.starts_with("\xff\xd8\xff")) return ImageFormat::kJpeg;
  if (is_riff(bytes, "WEBP")) return ImageFormat::kWebp;
  if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) return ImageFormat::kGif;
  if (bytes.starts_with("BM")) return ImageFormat::kBmp;
  return std::nullopt;
}

Result<void> check_size(ImageFormat format, int64_t width, int64_t height,
                        const ImageLimits& limits) {
  const std::string found =
      concat({"the ", format_name(format), " says that it has ", std::to_string(width), " x ",
              std::to_string(height), " pixels"});
  if (width < 1 || height < 1)
    return fail(ErrorCode::kInvalid, concat({found, "; at least 1 x 1 was expected"}));
  if (width > std::numeric_limits<int32_t>::max() || height > limits.pixels_max / width)
    return fail(ErrorCode::kTooLarge,
                concat({found, "; at most ", std::to_string(limits.pixels_max), " are decoded"}));
  if (limits.admit) return limits.admit(width * height);
  return {};
}

tl::unexpected<Error> damaged(ImageFormat format, std::string_view what) {
  return fail(ErrorCode::kInvalid, concat({"the ", format_name(format), " is damaged: ", what}));
}

Result<Image> decode_image(std::string_view bytes, const ImageLimits& limits) {
  WEIR_TRY(check_file_size(FileKind::kImage, bytes.size(), limits.file_bytes_max));
  const std::optional<ImageFormat> format = format_of(bytes);
  if (!format) return refuse_format(FileKind::kImage, bytes, kRead);
  WEIR_ASSIGN(Decoded decoded, decode(*format, bytes, limits));
  return upright(std::move(decoded.image), decoded.orientation);
}

}  // namespace weir::media
