// PNG by libspng: its limits are set by calls, and it returns its errors.
#include <spng.h>

#include <memory>

#include "media/image/decoders.h"
#include "media/image/exif.h"

namespace weir::media {
namespace {

struct FreeContext {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};

// Of one chunk of text, colour profile or EXIF data, and of all that are kept.
constexpr size_t kChunkBytesMax = size_t{1} << 20, kChunksBytesMax = size_t{4} << 20;

int orientation_of(spng_ctx* context) {
  spng_exif exif{};
  if (spng_get_exif(context, &exif) != 0) return 1;
  return exif_orientation({exif.data, exif.length});
}

}  // namespace

Result<Decoded> decode_png(std::string_view bytes, const ImageLimits& limits) {
  const std::unique_ptr<spng_ctx, FreeContext> context(spng_ctx_new(0));
  if (!context) return fail(ErrorCode::kCapacity, "no memory for a PNG's decoder");
  spng_set_chunk_limits(context.get(), kChunkBytesMax, kChunksBytesMax);
  // A wrong checksum: of the picture an error, of what is beside it a reason to ignore that.
  spng_set_crc_action(context.get(), SPNG_CRC_ERROR, SPNG_CRC_DISCARD);
  spng_set_png_buffer(context.get(), bytes.data(), bytes.size());
  spng_ihdr header{};
  const int refused = spng_get_ihdr(context.get(), &header);
  if (refused == SPNG_EWIDTH || refused == SPNG_EHEIGHT)
    WEIR_TRY(check_size(ImageFormat::kPng, header.width, header.height, limits));
  if (refused != 0) return damaged(ImageFormat::kPng, spng_strerror(refused));
  WEIR_TRY(check_size(ImageFormat::kPng, header.width, header.height, limits));
  Decoded out;
  out.image = Image(static_cast<int>(header.width), static_cast<int>(header.height));
  // All kinds of pixels become bytes of red, green and blue; of 16 bits the upper eight are taken.
  const int error = spng_decode_image(context.get(), out.image.rgb.data(), out.image.rgb.size(),
                                      SPNG_FMT_RGB8, 0);
  if (error != 0) return damaged(ImageFormat::kPng, spng_strerror(error));
  // The checksum of the last pixels stands after them. What else is wrong there does not matter.
  if (spng_decode_chunks(context.get()) == SPNG_ECHUNK_CRC)
    return damaged(ImageFormat::kPng, spng_strerror(SPNG_ECHUNK_CRC));
  out.orientation = orientation_of(context.get());
  return out;
}

}  // namespace weir::media
