// WebP by libwebp; the first picture of an animation, and EXIF data, by its libwebpdemux.
#include <webp/decode.h>
#include <webp/demux.h>

#include <cstdint>
#include <memory>

#include "media/image/decoders.h"
#include "media/image/exif.h"

namespace weir::media {
namespace {

struct DeleteDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
struct DeleteAnimation {
  void operator()(WebPAnimDecoder* decoder) const { WebPAnimDecoderDelete(decoder); }
};

const char* text_of(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "its data end early";
    case VP8_STATUS_OUT_OF_MEMORY:
      return "it asks for more memory than there is";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "it uses a feature that libwebp does not know";
    default:
      return "its data are not valid";
  }
}

int orientation_of(const WebPData& data) {
  const std::unique_ptr<WebPDemuxer, DeleteDemuxer> demuxer(WebPDemux(&data));
  if (!demuxer) return 1;
  WebPChunkIterator chunk{};
  int orientation = 1;
  if (WebPDemuxGetChunk(demuxer.get(), "EXIF", 1, &chunk) != 0)
    orientation =
        exif_orientation({reinterpret_cast<const char*>(chunk.chunk.bytes), chunk.chunk.size});
  WebPDemuxReleaseChunkIterator(&chunk);
  return orientation;
}

Result<void> decode_still(const WebPData& data, Image& image) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    return damaged(ImageFormat::kWebp, "libwebp is of another version than its header");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {image.rgb.data(), 3 * image.width, image.rgb.size()};
  const VP8StatusCode status = WebPDecode(data.bytes, data.size, &config);
  if (status != VP8_STATUS_OK) return damaged(ImageFormat::kWebp, text_of(status));
  return {};
}

// The first picture on its canvas, which is black where the picture does not reach.
Result<void> decode_first(const WebPData& data, Image& image) {
  WebPAnimDecoderOptions options;
  if (WebPAnimDecoderOptionsInit(&options) == 0)
    return damaged(ImageFormat::kWebp, "libwebpdemux is of another version than its header");
  options.color_mode = MODE_RGBA;
  const std::unique_ptr<WebPAnimDecoder, DeleteAnimation> decoder(
      WebPAnimDecoderNew(&data, &options));
  WebPAnimInfo info{};
  uint8_t* canvas = nullptr;
  int timestamp = 0;
  if (!decoder || WebPAnimDecoderGetInfo(decoder.get(), &info) == 0 ||
      info.canvas_width != static_cast<uint32_t>(image.width) ||
      info.canvas_height != static_cast<uint32_t>(image.height) ||
      WebPAnimDecoderGetNext(decoder.get(), &canvas, &timestamp) == 0)
    return damaged(ImageFormat::kWebp, "its first picture cannot be read");
  for (size_t i = 0; i < image.rgb.size(); ++i) image.rgb[i] = canvas[i / 3 * 4 + i % 3];
  return {};
}

}  // namespace

Result<Decoded> decode_webp(std::string_view bytes, const ImageLimits& limits) {
  const WebPData data = {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  WebPBitstreamFeatures features{};
  const VP8StatusCode status = WebPGetFeatures(data.bytes, data.size, &features);
  if (status != VP8_STATUS_OK) return damaged(ImageFormat::kWebp, text_of(status));
  WEIR_TRY(check_size(ImageFormat::kWebp, features.width, features.height, limits));
  Decoded out;
  out.image = Image(features.width, features.height);
  WEIR_TRY(features.has_animation != 0 ? decode_first(data, out.image)
                                       : decode_still(data, out.image));
  out.orientation = orientation_of(data);
  return out;
}

}  // namespace weir::media
