// A video's file: any bytes that begin as one give frames within the limits, or an error of one line.
// The first byte says which frames are chosen.
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "media/video/video_file.h"

namespace {

using namespace weir::media;

void check_error(const weir::Error& error) {
  CHECK(!error.message.empty());
  for (const char c : error.message) CHECK(c != '\n' && c != '\0');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const int64_t step = 1 + data[0] % 4;
  // Many small videos find more than few large ones.
  constexpr int64_t kPixelsMax = 1 << 14, kFramesMax = 32;
  size_t asked = 0;
  VideoLimits limits;
  limits.pixels_max = kPixelsMax;
  limits.frames_max = kFramesMax;
  limits.decode_seconds_max = 5;
  limits.admit = [&](size_t bytes) -> weir::Result<void> {
    asked += bytes;
    return {};
  };
  auto file = VideoFile::open({reinterpret_cast<const char*>(data) + 1, size - 1}, limits);
  if (!file) {
    check_error(file.error());
    return 0;
  }
  CHECK(file->frames() >= 1 && file->frames() <= kFramesMax && file->rate() > 0);
  std::vector<int64_t> chosen;
  for (int64_t frame = 0; frame < file->frames(); frame += step) chosen.push_back(frame);
  file->choose(chosen);
  int width = 0, height = 0;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto image = file->next();
    if (!image) {
      check_error(image.error());
      return 0;
    }
    if (i == 0) width = image->width, height = image->height;
    CHECK(image->width == width && image->height == height && asked > 0);
    CHECK(int64_t{width} * height <= kPixelsMax);
    CHECK(image->rgb.size() == 3 * static_cast<size_t>(width) * static_cast<size_t>(height));
  }
  return 0;
}
