// JPEG by libjpeg-turbo, through TurboJPEG, which returns its errors where libjpeg would leave by
// longjmp. With its defaults it decodes as the libraries do that the references use: the accurate
// inverse transform, smooth chroma.
#include <turbojpeg.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "media/image/decoders.h"
#include "media/image/exif.h"

namespace weir::media {
namespace {

struct Destroy {
  void operator()(void* handle) const { tjDestroy(handle); }
};

// Four inks to three lights. Files have the inks inverted, as Adobe's programs write them.
void convert_cmyk(const std::vector<uint8_t>& inverted, std::vector<uint8_t>& rgb) {
  const uint8_t* from = inverted.data();
  for (size_t i = 0; i < rgb.size(); i += 3, from += 4) {
    const int light = from[3];  // What black ink leaves.
    for (size_t c = 0; c < 3; ++c) {
      const int product = (255 - from[c]) * light + 128;
      const int taken = (product + (product >> 8)) >> 8;  // Divided by 255, rounded.
      rgb[i + c] = static_cast<uint8_t>(light - taken);
    }
  }
}

struct Segments {
  std::string_view exif{};
  size_t scan_at = std::string_view::npos;  // Where the first pixels begin.
};

// After the two bytes that begin a JPEG: segments of 0xff, kind, length (2 bytes), contents.
Segments read_segments(std::string_view jpeg) {
  constexpr uint8_t kApp1 = 0xe1, kStartOfScan = 0xda;
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(jpeg[at]); };
  Segments found;
  for (size_t at = 2; at + 4 <= jpeg.size() && byte(at) == 0xff;) {
    const uint8_t kind = byte(at + 1);
    if (kind == 0xff) {  // Fill.
      ++at;
      continue;
    }
    if (kind == kStartOfScan) {
      found.scan_at = at;
      break;
    }
    const size_t length = size_t{byte(at + 2)} << 8 | byte(at + 3);
    if (length < 2) break;
    const std::string_view contents = jpeg.substr(at + 4, length - 2);
    if (kind == kApp1 && found.exif.empty() && contents.starts_with("Exif")) found.exif = contents;
    at += 2 + length;
  }
  return found;
}

// The library would fill what is missing with grey, and warn. What else it warns of, as some cameras'
// bytes between two segments, leaves the picture whole.
bool ends_early(std::string_view jpeg, size_t scan_at, const std::string& warning) {
  constexpr std::string_view kEnd = "\xff\xd9";
  return scan_at == std::string_view::npos || jpeg.find(kEnd, scan_at) == std::string_view::npos ||
         warning.find("remature end") != std::string::npos;
}

}  // namespace

Result<Decoded> decode_jpeg(std::string_view bytes, const ImageLimits& limits) {
  const std::unique_ptr<void, Destroy> handle(tjInitDecompress());
  if (!handle) return fail(ErrorCode::kCapacity, "no memory for a JPEG's decoder");
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, subsampling = -1, colours = -1;
  const int refused = tjDecompressHeader3(handle.get(), data, bytes.size(), &width, &height,
                                          &subsampling, &colours);
  // A subsampling that has no name here is no obstacle: everything else is known then.
  if (refused != 0 && (width == 0 || height == 0 || colours < 0))
    return damaged(ImageFormat::kJpeg, tjGetErrorStr2(handle.get()));
  WEIR_TRY(check_size(ImageFormat::kJpeg, width, height, limits));
  Decoded out;
  out.image = Image(width, height);
  const bool cmyk = colours == TJCS_CMYK || colours == TJCS_YCCK;
  std::vector<uint8_t> inks(cmyk ? 4 * size_t(width) * size_t(height) : 0);
  const Segments segments = read_segments(bytes);
  const int error = tjDecompress2(handle.get(), data, bytes.size(),
                                  cmyk ? inks.data() : out.image.rgb.data(), width, 0, height,
                                  cmyk ? TJPF_CMYK : TJPF_RGB, TJFLAG_LIMITSCANS);
  if (error != 0) {
    const std::string text = tjGetErrorStr2(handle.get());
    if (tjGetErrorCode(handle.get()) != TJERR_WARNING) return damaged(ImageFormat::kJpeg, text);
    if (ends_early(bytes, segments.scan_at, text))
      return damaged(ImageFormat::kJpeg, "its data end early");
  }
  if (cmyk) convert_cmyk(inks, out.image.rgb);
  out.orientation = exif_orientation(segments.exif);
  return out;
}

}  // namespace weir::media
