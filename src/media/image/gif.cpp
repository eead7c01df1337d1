// GIF by giflib, record by record up to the first picture: what follows it is not read.
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "media/image/decoders.h"

namespace weir::media {
namespace {

struct CloseFile {
  void operator()(GifFileType* file) const { DGifCloseFile(file, nullptr); }
};

int read_bytes(GifFileType* file, GifByteType* to, int count) {
  auto& left = *static_cast<std::string_view*>(file->UserData);
  const size_t taken = std::min(left.size(), static_cast<size_t>(count));
  std::memcpy(to, left.data(), taken);
  left.remove_prefix(taken);
  return static_cast<int>(taken);
}

const char* text_of(int error) {
  const char* text = GifErrorString(error);
  return text != nullptr ? text : "its data are not valid";
}

// Passes over an extension, and takes from it which index is transparent.
bool read_extension(GifFileType* file, int& transparent) {
  int code = 0;
  GifByteType* block = nullptr;  // A length, and as many bytes.
  if (DGifGetExtension(file, &code, &block) == GIF_ERROR) return false;
  while (block != nullptr) {
    GraphicsControlBlock control{};
    if (code == GRAPHICS_EXT_FUNC_CODE &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
      transparent = control.TransparentColor;
    if (DGifGetExtensionNext(file, &block) == GIF_ERROR) return false;
  }
  return true;
}

// Reads up to the first picture's description. False at the end, or at an error.
bool find_picture(GifFileType* file, int& transparent) {
  for (;;) {
    GifRecordType kind = UNDEFINED_RECORD_TYPE;
    if (DGifGetRecordType(file, &kind) == GIF_ERROR) return false;
    if (kind == IMAGE_DESC_RECORD_TYPE) return DGifGetImageDesc(file) == GIF_OK;
    if (kind != EXTENSION_RECORD_TYPE || !read_extension(file, transparent)) return false;
  }
}

using Palette = std::array<std::array<uint8_t, 3>, 256>;

Palette palette_of(const GifFileType& file) {
  Palette palette{};
  const ColorMapObject* map =
      file.Image.ColorMap != nullptr ? file.Image.ColorMap : file.SColorMap;
  for (int i = 0; map != nullptr && i < std::min(map->ColorCount, 256); ++i)
    palette[static_cast<size_t>(i)] = {map->Colors[i].Red, map->Colors[i].Green,
                                       map->Colors[i].Blue};
  return palette;
}

// The rows of a picture of `height` in the order in which the file has them.
std::vector<int> row_order(int height, bool interlaced) {
  std::vector<int> order;
  constexpr std::array<std::array<int, 2>, 4> kPasses = {{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  constexpr std::array<std::array<int, 2>, 1> kOnce = {{{0, 1}}};
  const auto add = [&](const std::array<int, 2>& pass) {
    for (int y = pass[0]; y < height; y += pass[1]) order.push_back(y);
  };
  if (interlaced) std::ranges::for_each(kPasses, add);
  if (!interlaced) std::ranges::for_each(kOnce, add);
  return order;
}

}  // namespace

Result<Decoded> decode_gif(std::string_view bytes, const ImageLimits& limits) {
  int error = 0;
  const std::unique_ptr<GifFileType, CloseFile> file(DGifOpen(&bytes, read_bytes, &error));
  if (!file) return damaged(ImageFormat::kGif, text_of(error));
  WEIR_TRY(check_size(ImageFormat::kGif, file->SWidth, file->SHeight, limits));
  int transparent = NO_TRANSPARENT_COLOR;
  if (!find_picture(file.get(), transparent))
    return damaged(ImageFormat::kGif,
                   file->Error != 0 ? text_of(file->Error) : "it has no picture");
  const GifImageDesc& picture = file->Image;
  if (picture.Left < 0 || picture.Top < 0 || picture.Width < 1 || picture.Height < 1 ||
      picture.Width > file->SWidth - picture.Left || picture.Height > file->SHeight - picture.Top)
    return damaged(ImageFormat::kGif, "its first picture does not lie within its canvas");

  const Palette palette = palette_of(*file);
  Decoded out;
  out.image = Image(file->SWidth, file->SHeight);
  const auto& below = palette[transparent == NO_TRANSPARENT_COLOR ? 0 : size_t(transparent & 255)];
  for (size_t i = 0; i < out.image.rgb.size(); ++i) out.image.rgb[i] = below[i % 3];
  std::vector<GifPixelType> indices(static_cast<size_t>(picture.Width));
  for (const int y : row_order(picture.Height, picture.Interlace)) {
    if (DGifGetLine(file.get(), indices.data(), picture.Width) == GIF_ERROR)
      return damaged(ImageFormat::kGif, text_of(file->Error));
    uint8_t* to = out.image.row(picture.Top + y) + 3 * static_cast<size_t>(picture.Left);
    for (const GifPixelType index : indices) {
      std::copy_n(palette[index].begin(), 3, to);
      to += 3;
    }
  }
  return out;
}

}  // namespace weir::media
