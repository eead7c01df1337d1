// The videos of tests/data/videos (make.py there): eight frames, four a second, of blocks that move.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>

#include "media/image/image.h"

namespace weir::media {

inline constexpr int kSide = 64, kFrames = 8;

inline std::string video_sample(const std::string& name) {
  std::ifstream file(std::string(WEIR_SOURCE_DIR "/tests/data/videos/") + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Image pattern(int frame) {
  Image image(kSide, kSide);
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x) {
      const int v = ((x / 8 + 3 * frame) ^ (y / 16)) % 8;
      uint8_t* const pixel = image.row(y) + 3 * x;
      pixel[0] = static_cast<uint8_t>(v * 37);
      pixel[1] = static_cast<uint8_t>(v * 91 + 40);
      pixel[2] = static_cast<uint8_t>(255 - v * 29);
    }
  return image;
}

// The mean of how far their bytes are from each other.
inline double distance(const Image& a, const Image& b) {
  if (a.width != b.width || a.height != b.height) return 256;
  double sum = 0;
  for (size_t i = 0; i < a.rgb.size(); ++i) sum += std::abs(int{a.rgb[i]} - int{b.rgb[i]});
  return sum / static_cast<double>(a.rgb.size());
}

}  // namespace weir::media
