// BMP, which needs no library: pixels of 1, 4, 8, 16, 24 and 32 bits as they are, or with masks.
// Run-length codes are refused.
#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "base/concat.h"
#include "media/image/decoders.h"

namespace weir::media {
namespace {

constexpr size_t kFileHeaderBytes = 14;
enum Compression : uint32_t { kPlain = 0, kMasks = 3, kMasksAlpha = 6 };

struct Header {
  int64_t width = 0;
  int64_t height = 0;
  bool from_below = true;  // Rows begin at the bottom of the picture.
  uint32_t bits = 0;       // Of a pixel.
  uint32_t compression = kPlain;
  size_t pixels_at = 0;
  size_t palette_at = 0;
  size_t palette_entry_bytes = 4;
  size_t palette_count = 0;
  std::array<uint32_t, 3> masks{};  // Red, green, blue; of 16 and 32 bits.
};

class LittleEndian {
 public:
  explicit LittleEndian(std::string_view bytes) : bytes_(bytes) {}
  // 0 beyond the end.
  uint32_t number(size_t at, size_t count) const {
    uint32_t value = 0;
    for (size_t i = count; i-- > 0;)
      value = value << 8 | (at + i < bytes_.size() ? static_cast<uint8_t>(bytes_[at + i]) : 0);
    return value;
  }

 private:
  std::string_view bytes_;
};

Result<void> refuse(std::string message) { return fail(ErrorCode::kUnsupported, message); }

Result<void> read_masks(const LittleEndian& in, size_t header_bytes, Header& header) {
  header.masks = header.bits == 16 ? std::array<uint32_t, 3>{0x7c00, 0x03e0, 0x001f}
                                   : std::array<uint32_t, 3>{0xff0000, 0xff00, 0xff};
  if (header.compression == kPlain) return {};
  for (size_t c = 0; c < 3; ++c) header.masks[c] = in.number(kFileHeaderBytes + 40 + 4 * c, 4);
  if (header_bytes == 40) header.palette_at += 12;  // The masks lie between header and palette.
  for (const uint32_t mask : header.masks) {
    const uint32_t ones = mask == 0 ? 0 : mask >> std::countr_zero(mask);
    if (ones == 0 || (ones & (ones + 1)) != 0)
      return damaged(ImageFormat::kBmp, "a mask of a colour is not a run of bits");
  }
  return {};
}

Result<Header> read_header(std::string_view bytes) {
  const LittleEndian in(bytes);
  const size_t header_bytes = in.number(kFileHeaderBytes, 4);
  const bool old = header_bytes == 12;
  if (!old && (header_bytes < 40 || header_bytes > 124))
    return damaged(ImageFormat::kBmp, concat({"its header has ", std::to_string(header_bytes),
                                              " bytes; 12, or 40 to 124 were expected"}));
  if (bytes.size() < kFileHeaderBytes + header_bytes)
    return damaged(ImageFormat::kBmp, "its data end early");
  Header header;
  header.pixels_at = in.number(10, 4);
  header.palette_at = kFileHeaderBytes + header_bytes;
  header.palette_entry_bytes = old ? 3 : 4;
  const auto side = [&](size_t at) { return static_cast<int32_t>(in.number(at, 4)); };
  header.width = old ? static_cast<int32_t>(in.number(18, 2)) : side(18);
  header.height = old ? static_cast<int32_t>(in.number(20, 2)) : side(22);
  header.from_below = header.height >= 0;
  if (header.height < 0) header.height = -header.height;
  header.bits = in.number(old ? 24 : 28, 2);
  header.compression = old ? kPlain : in.number(30, 4);
  if (header.bits != 1 && header.bits != 4 && header.bits != 8 && header.bits != 16 &&
      header.bits != 24 && header.bits != 32)
    return damaged(ImageFormat::kBmp, concat({"its pixels have ", std::to_string(header.bits),
                                              " bits; 1, 4, 8, 16, 24 or 32 were expected"}));
  const bool masks = header.compression == kMasks || header.compression == kMasksAlpha;
  if (header.compression != kPlain && !(masks && (header.bits == 16 || header.bits == 32)))
    WEIR_TRY(refuse(concat({"the BMP is compressed (method ", std::to_string(header.compression),
                            "); pixels as they are, or with masks, are read"})));
  if (header.bits == 16 || header.bits == 32) WEIR_TRY(read_masks(in, header_bytes, header));
  const size_t said = old ? 0 : in.number(46, 4);
  const size_t most = header.bits <= 8 ? size_t{1} << header.bits : 0;
  header.palette_count = said == 0 || said > most ? most : said;
  return header;
}

// The part of a pixel below a mask, as a byte.
uint8_t below_mask(uint32_t pixel, uint32_t mask) {
  const int shift = std::countr_zero(mask);
  const uint64_t most = mask >> shift, value = (pixel & mask) >> shift;
  return static_cast<uint8_t>(value * 255 / most);  // Rounded down, as the references do it.
}

void read_row(const LittleEndian& in, const Header& header, size_t at, uint8_t* to) {
  for (size_t x = 0; x < static_cast<size_t>(header.width); ++x, to += 3) {
    if (header.bits <= 8) {
      const size_t bit = x * header.bits;
      const uint32_t byte = in.number(at + bit / 8, 1);
      const size_t index =
          byte >> (8 - header.bits - bit % 8) & ((uint32_t{1} << header.bits) - 1);
      if (index >= header.palette_count) continue;  // Black.
      const size_t entry = header.palette_at + index * header.palette_entry_bytes;
      for (size_t c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>(in.number(entry + 2 - c, 1));
    } else if (header.bits == 24) {
      for (size_t c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>(in.number(at + 3 * x + 2 - c, 1));
    } else {
      const size_t bytes = header.bits / 8;
      const uint32_t pixel = in.number(at + bytes * x, bytes);
      for (size_t c = 0; c < 3; ++c) to[c] = below_mask(pixel, header.masks[c]);
    }
  }
}

}  // namespace

Result<Decoded> decode_bmp(std::string_view bytes, const ImageLimits& limits) {
  WEIR_ASSIGN(const Header header, read_header(bytes));
  WEIR_TRY(check_size(ImageFormat::kBmp, header.width, header.height, limits));
  // Rows are filled up to whole words. No overflow: width is at most pixels_max.
  const size_t width = static_cast<size_t>(header.width), height = size_t(header.height);
  const size_t row_bytes = (width * header.bits + 31) / 32 * 4;
  const size_t needed = row_bytes * (height - 1) + (width * header.bits + 7) / 8;
  if (header.pixels_at > bytes.size() || needed > bytes.size() - header.pixels_at)
    return damaged(ImageFormat::kBmp, "its data end early");
  Decoded out;
  out.image = Image(static_cast<int>(width), static_cast<int>(height));
  const LittleEndian in(bytes);
  for (size_t y = 0; y < height; ++y)
    read_row(in, header, header.pixels_at + y * row_bytes,
             out.image.row(static_cast<int>(header.from_below ? height - 1 - y : y)));
  return out;
}

}  // namespace weir::media
