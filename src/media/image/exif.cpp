#include "media/image/exif.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace weir::media {
namespace {

constexpr std::string_view kMark("Exif\0\0", 6);

// Numbers of two and four bytes in either order. Beyond the end all bytes are 0.
class TiffReader {
 public:
  explicit TiffReader(std::string_view bytes) : bytes_(bytes), big_(bytes.starts_with("MM")) {}

  uint32_t u16(size_t at) const { return number(at, 2); }
  uint32_t u32(size_t at) const { return number(at, 4); }

 private:
  uint32_t number(size_t at, size_t count) const {
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t place = at + (big_ ? i : count - 1 - i);
      value = value << 8 | (place < bytes_.size() ? static_cast<uint8_t>(bytes_[place]) : 0);
    }
    return value;
  }

  std::string_view bytes_;
  bool big_;
};

}  // namespace

int exif_orientation(std::string_view tiff) {
  if (tiff.starts_with(kMark)) tiff.remove_prefix(kMark.size());
  const TiffReader reader(tiff);
  if ((!tiff.starts_with("II") && !tiff.starts_with("MM")) || reader.u16(2) != 42) return 1;
  constexpr uint32_t kOrientation = 274, kShort = 3;
  const size_t directory = reader.u32(4);
  const size_t entries = reader.u16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + 12 * i;  // Tag, type, count, value: 2, 2, 4, 4 bytes.
    if (entry >= tiff.size()) break;
    if (reader.u16(entry) != kOrientation) continue;
    const uint32_t value = reader.u16(entry + 8);
    const bool valid = reader.u16(entry + 2) == kShort && value >= 1 && value <= 8;
    return valid ? static_cast<int>(value) : 1;
  }
  return 1;
}

Image upright(Image image, int orientation) {
  if (orientation <= 1) return image;
  const bool turned = orientation >= 5;  // Rows become columns.
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 ||
                          orientation == 8;  // Of the file's columns.
  const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 ||
                          orientation == 7;  // Of its rows.
  Image out(turned ? image.height : image.width, turned ? image.width : image.height);
  for (int y = 0; y < out.height; ++y) {
    uint8_t* to = out.row(y);
    for (int x = 0; x < out.width; ++x, to += 3) {
      const int column = turned ? y : x, row = turned ? x : y;
      const uint8_t* from = image.row(from_below ? image.height - 1 - row : row) +
                            3 * static_cast<ptrdiff_t>(from_right ? image.width - 1 - column
                                                                  : column);
      std::memcpy(to, from, 3);
    }
  }
  return out;
}

}  // namespace weir::media
