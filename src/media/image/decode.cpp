#include "media/image/decode.h"

#include <array>
#include <limits>
#include <string>
#include <utility>

#include "base/concat.h"
#include "media/image/decoders.h"
#include "media/image/exif.h"

namespace weir::media {
namespace {

constexpr const char* kRead = "PNG, JPEG, WebP, GIF and BMP are read";

bool is_box(std::string_view bytes, std::string_view brand) {
  return bytes.size() >= 12 && bytes.substr(4, 4) == "ftyp" && bytes.substr(8, 4) == brand;
}

// What a file of another format is called, as far as its first bytes tell.
std::string other_format(std::string_view bytes) {
  static constexpr std::array<std::pair<std::string_view, const char*>, 8> kBegins = {{
      {std::string_view("II*\0", 4), "TIFF"},
      {std::string_view("MM\0*", 4), "TIFF"},
      {std::string_view("\0\0\1\0", 4), "ICO"},
      {"%PDF-", "PDF"},
      {"8BPS", "Photoshop"},
      {"<svg", "SVG"},
      {"<?xml", "XML, perhaps SVG"},
      {"\xff\x0a", "JPEG XL"},
  }};
  for (const auto& [begin, name] : kBegins)
    if (bytes.starts_with(begin)) return name;
  if (is_box(bytes, "avif")) return "AVIF";
  for (const char* brand : {"heic", "heix", "mif1", "heim", "hevc"})
    if (is_box(bytes, brand)) return "HEIC";
  if (is_box(bytes, "isom") || is_box(bytes, "mp42")) return "MP4";
  return "";
}

tl::unexpected<Error> refuse_format(std::string_view bytes) {
  if (bytes.empty()) return fail(ErrorCode::kInvalid, concat({"the image is empty; ", kRead}));
  const std::string name = other_format(bytes);
  if (!name.empty())
    return fail(ErrorCode::kMediaType, concat({"the image is ", name, "; ", kRead}));
  constexpr const char* kHex = "0123456789abcdef";
  std::string begin;
  for (const char c : bytes.substr(0, 8)) {
    begin += begin.empty() ? "" : " ";
    begin += kHex[static_cast<uint8_t>(c) >> 4];
    begin += kHex[static_cast<uint8_t>(c) & 15];
  }
  return fail(ErrorCode::kMediaType,
              concat({"the image is of no known format, it begins with ", begin, "; ", kRead}));
}

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
  if (bytes.starts_with("RIFF") && bytes.size() >= 12 && bytes.substr(8, 4) == "WEBP")
    return ImageFormat::kWebp;
  if (bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a")) return ImageFormat::kGif;
  if (bytes.starts_with("BM")) return ImageFormat::kBmp;
  return std::nullopt;
}

Result<void> check_size(ImageFormat format, int64_t width, int64_t height,
                        const ImageLimits& limits) {
  const std::string found = concat({"the ", format_name(format), " says that it has ",
                                    std::to_string(width), " x ", std::to_string(height),
                                    " pixels"});
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
  if (bytes.size() > limits.file_bytes_max)
    return fail(ErrorCode::kTooLarge,
                concat({"the image's file has ", std::to_string(bytes.size()), " bytes; at most ",
                        std::to_string(limits.file_bytes_max), " are read"}));
  const std::optional<ImageFormat> format = format_of(bytes);
  if (!format) return refuse_format(bytes);
  WEIR_ASSIGN(Decoded decoded, decode(*format, bytes, limits));
  return upright(std::move(decoded.image), decoded.orientation);
}

}  // namespace weir::media
