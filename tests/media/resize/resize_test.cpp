#include "media/resize/resize.h"

#include <gtest/gtest.h>

#include <array>
#include <span>

#include "base/crc32c.h"
#include "media/resize/weights.h"

namespace weir::media {
namespace {

// A picture of every value, from a generator that two languages write alike.
Image noise(int width, int height) {
  Image image(width, height);
  uint32_t state = 1;
  for (uint8_t& byte : image.rgb) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return image;
}

uint32_t checksum(const Image& image) { return crc32c(std::as_bytes(std::span(image.rgb))); }

struct Expected {
  int width, height;
  Filter filter;
  uint32_t checksum;
};

TEST(Resize, IsPillowsToTheInteger) {
  // Of noise(53, 37), by Image.resize of Pillow 9.4.
  constexpr std::array kExpected = {
      Expected{20, 30, Filter::kNearest, 0xed975f0f},
      Expected{70, 90, Filter::kNearest, 0x858a698d},
      Expected{40, 80, Filter::kNearest, 0x4664721f},
      Expected{20, 30, Filter::kLanczos, 0x298a1247},
      Expected{70, 90, Filter::kLanczos, 0xe61b78f5},
      Expected{53, 10, Filter::kLanczos, 0xb645e5f5},
      Expected{11, 37, Filter::kLanczos, 0x9649bcbb},
      Expected{40, 80, Filter::kLanczos, 0xaa0966a4},
      Expected{20, 30, Filter::kBilinear, 0x86de14e2},
      Expected{70, 90, Filter::kBilinear, 0xc32bd5c8},
      Expected{53, 10, Filter::kBilinear, 0x297e702f},
      Expected{11, 37, Filter::kBilinear, 0x33751e8c},
      Expected{40, 80, Filter::kBilinear, 0x553ef7b3},
      Expected{20, 30, Filter::kBicubic, 0x54af1fef},
      Expected{70, 90, Filter::kBicubic, 0x2d08a2ec},
      Expected{53, 10, Filter::kBicubic, 0x22065ac3},
      Expected{11, 37, Filter::kBicubic, 0x40076131},
      Expected{40, 80, Filter::kBicubic, 0x7ecbcb8c},
      Expected{20, 30, Filter::kBox, 0x04c16518},
      Expected{70, 90, Filter::kBox, 0x858a698d},
      Expected{53, 10, Filter::kBox, 0xd459f72d},
      Expected{11, 37, Filter::kBox, 0x1c80b229},
      Expected{40, 80, Filter::kBox, 0xaba73eaa},
  };
  const Image image = noise(53, 37);
  for (const Expected& each : kExpected)
    EXPECT_EQ(checksum(resize(image, each.width, each.height, each.filter, Arithmetic::kPillow)),
              each.checksum)
        << each.width << " x " << each.height << " filter " << static_cast<int>(each.filter);
}

TEST(Resize, TorchsWeightsDifferByTwoLevelsAtMost) {
  const Image image = noise(53, 37);
  for (const Filter filter : {Filter::kBilinear, Filter::kBicubic, Filter::kLanczos}) {
    const Image pillow = resize(image, 30, 20, filter, Arithmetic::kPillow);
    const Image torch = resize(image, 30, 20, filter, Arithmetic::kTorch);
    EXPECT_NE(pillow, torch);
    for (size_t i = 0; i < pillow.rgb.size(); ++i)
      EXPECT_LE(std::abs(pillow.rgb[i] - torch.rgb[i]), 2);
  }
}

TEST(Resize, APlainColourStaysAsItIs) {
  for (const Arithmetic arithmetic : {Arithmetic::kPillow, Arithmetic::kTorch}) {
    for (const int value : {0, 1, 127, 254, 255}) {
      Image image(31, 17);
      for (uint8_t& byte : image.rgb) byte = static_cast<uint8_t>(value);
      for (int filter = 0; filter <= 4; ++filter) {
        const Image out = resize(image, 64, 5, *filter_of(filter), arithmetic);
        for (const uint8_t byte : out.rgb) ASSERT_EQ(byte, value) << filter;
      }
    }
  }
}

TEST(Resize, TheSameSizeIsTheSamePicture) {
  const Image image = noise(20, 10);
  EXPECT_EQ(resize(image, 20, 10, Filter::kLanczos, Arithmetic::kPillow), image);
  EXPECT_EQ(resize(image, 20, 10, Filter::kNearest, Arithmetic::kTorch), image);
}

TEST(Resize, WeightsLieWithinThePicture) {
  for (const auto& [from, to] : {std::pair{1, 1}, {1, 9}, {9, 1}, {1000, 7}, {7, 1000}, {3, 2}}) {
    for (int filter = 1; filter <= 4; ++filter) {
      const AxisWeights axis(from, to, *filter_of(filter), Arithmetic::kTorch);
      for (int i = 0; i < to; ++i) {
        ASSERT_GE(axis.first(i), 0);
        ASSERT_FALSE(axis.weights(i).empty());
        ASSERT_LE(axis.first(i) + static_cast<int>(axis.weights(i).size()), from);
      }
    }
  }
}

TEST(Filter, NumbersArePillows) {
  EXPECT_EQ(filter_of(1), Filter::kLanczos);
  EXPECT_EQ(filter_of(3), Filter::kBicubic);
  EXPECT_EQ(filter_of(5), std::nullopt);
  EXPECT_EQ(filter_of(-1), std::nullopt);
}

}  // namespace
}  // namespace weir::media
