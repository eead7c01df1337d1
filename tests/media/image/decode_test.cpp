#include "media/image/decode.h"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>

#include "base/base64.h"
#include "base/crc32c.h"
#include "media/image/samples.h"

namespace weir::media {
namespace {

std::string file_of(const Sample& sample) { return *decode_base64(sample.base64); }

std::string sample_file(std::string_view name) {
  for (const Sample& sample : kSamples)
    if (sample.name == name) return file_of(sample);
  ADD_FAILURE() << name;
  return "";
}

Result<Image> decode(std::string_view bytes) { return decode_image(bytes, ImageLimits{}); }

void expect_refused(std::string_view bytes, ErrorCode code, std::string_view part) {
  const Result<Image> image = decode(bytes);
  ASSERT_FALSE(image) << part;
  EXPECT_EQ(image.error().code, code) << image.error().message;
  EXPECT_NE(image.error().message.find(part), std::string::npos) << image.error().message;
}

void put(std::string& bytes, size_t at, std::string_view part) { bytes.replace(at, part.size(), part); }

uint32_t png_checksum(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  return ~crc;
}

// A PNG whose header states another size, with the checksum that goes with it.
std::string png_of_size(std::string_view width_height) {
  std::string bytes = sample_file("png_rgb");
  put(bytes, 16, width_height);
  const uint32_t crc = png_checksum(std::string_view(bytes).substr(12, 17));
  for (int i = 0; i < 4; ++i) bytes[29 + static_cast<size_t>(i)] = static_cast<char>(crc >> (24 - 8 * i));
  return bytes;
}

TEST(Decode, EveryFileIsWhatPillowMakesOfIt) {
  for (const Sample& sample : kSamples) {
    const Result<Image> image = decode(file_of(sample));
    ASSERT_TRUE(image) << sample.name << ": " << image.error().message;
    EXPECT_EQ(image->width, sample.width) << sample.name;
    EXPECT_EQ(image->height, sample.height) << sample.name;
    EXPECT_EQ(crc32c(std::as_bytes(std::span(image->rgb))), sample.checksum) << sample.name;
  }
}

TEST(Decode, ATurnedJpegEqualsItsUprightTwin) {
  // Both were made of one picture by the same encoder; the file of one says that it lies on its side.
  const Image flat = *decode(sample_file("jpeg_420"));
  const Image turned = *decode(sample_file("jpeg_exif_6"));
  ASSERT_EQ(turned.width, flat.height);
  for (int y = 0; y < flat.height; ++y)
    for (int x = 0; x < flat.width; ++x)
      for (int c = 0; c < 3; ++c)
        EXPECT_EQ(turned.row(x)[3 * (flat.height - 1 - y) + c], flat.row(y)[3 * x + c]);
}

TEST(Decode, AFileThatEndsEarlyIsRefused) {
  for (const Sample& sample : kSamples) {
    const std::string bytes = file_of(sample);
    for (const size_t length : {bytes.size() / 3, bytes.size() / 2, bytes.size() * 3 / 5}) {
      const Result<Image> image = decode(std::string_view(bytes).substr(0, length));
      // Of an animation the first picture can be there whole.
      const bool animated = std::string_view(sample.name).ends_with("animated");
      if (animated && image && *image == *decode(bytes)) continue;
      ASSERT_FALSE(image) << sample.name << " of " << length << " bytes";
      EXPECT_FALSE(image.error().message.empty());
    }
  }
}

TEST(Decode, ABombIsRefusedByItsHeader) {
  const std::string huge_png = png_of_size(std::string_view("\0\0\x75\x30\0\0\x75\x30", 8));
  expect_refused(huge_png, ErrorCode::kTooLarge,
                 "the PNG says that it has 30000 x 30000 pixels; at most 67108864 are decoded");
  std::string gif = sample_file("gif");
  put(gif, 6, std::string_view("\x30\x75\x30\x75", 4));
  expect_refused(gif, ErrorCode::kTooLarge, "the GIF says that it has 30000 x 30000 pixels");
  std::string bmp = sample_file("bmp_24");
  put(bmp, 18, std::string_view("\x30\x75\0\0\x30\x75\0\0", 8));
  expect_refused(bmp, ErrorCode::kTooLarge, "the BMP says that it has 30000 x 30000 pixels");
  std::string jpeg = sample_file("jpeg_420");
  const size_t frame = jpeg.find("\xff\xc0");
  put(jpeg, frame + 5, "\x75\x30\x75\x30");
  expect_refused(jpeg, ErrorCode::kTooLarge, "the JPEG says that it has 30000 x 30000 pixels");
  std::string webp = sample_file("webp_lossless");
  put(webp, 21, "\xff\xff\xff\x0f");  // 14 bits of width - 1, 14 of height - 1.
  expect_refused(webp, ErrorCode::kTooLarge, "the WebP says that it has 16384 x 16384 pixels");
}

TEST(Decode, APictureWithoutPixelsIsRefused) {
  expect_refused(png_of_size(std::string_view("\0\0\0\0\0\0\0\0", 8)), ErrorCode::kInvalid, "0 x 0");
  std::string gif = sample_file("gif");
  put(gif, 6, std::string_view("\0\0\0\0", 4));
  expect_refused(gif, ErrorCode::kInvalid, "the GIF says that it has 0 x 0 pixels; at least 1 x 1");
  std::string bmp = sample_file("bmp_24");
  put(bmp, 18, std::string_view("\0\0\0\0\0\0\0\0", 8));
  expect_refused(bmp, ErrorCode::kInvalid, "at least 1 x 1");
}

TEST(Decode, AWrongChecksumOfPixelsIsRefused) {
  std::string png = sample_file("png_rgb");
  const size_t data = png.find("IDAT");
  png[png.find("IEND") - 5] ^= 1;  // The last byte of the pixels' checksum.
  ASSERT_NE(data, std::string::npos);
  expect_refused(png, ErrorCode::kInvalid, "the PNG is damaged: ");
}

TEST(Decode, OtherFormatsAreRefusedByName) {
  expect_refused("", ErrorCode::kInvalid, "the image is empty");
  expect_refused(std::string_view("\0\0\0\x1c" "ftypheic\0\0\0\0", 16), ErrorCode::kMediaType,
                 "the image is HEIC; PNG, JPEG, WebP, GIF and BMP are read");
  expect_refused(std::string_view("\0\0\0\x1c" "ftypavif\0\0\0\0", 16), ErrorCode::kMediaType, "is AVIF");
  expect_refused(std::string_view("II*\0\x08\0\0\0", 8), ErrorCode::kMediaType, "is TIFF");
  expect_refused("<svg xmlns=", ErrorCode::kMediaType, "is SVG");
  expect_refused("hello world", ErrorCode::kMediaType, "it begins with 68 65 6c 6c 6f 20 77 6f");
}

TEST(Decode, LimitsAreHeldBeforeAnythingIsDecoded) {
  ImageLimits limits;
  limits.pixels_max = 34;  // The sample has 35.
  const Result<Image> large = decode_image(sample_file("png_rgb"), limits);
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, ErrorCode::kTooLarge);
  limits = ImageLimits{.file_bytes_max = 20};
  const Result<Image> bytes = decode_image(sample_file("png_rgb"), limits);
  ASSERT_FALSE(bytes);
  EXPECT_NE(bytes.error().message.find("at most 20 are read"), std::string::npos);
}

TEST(Decode, CompressedBmpIsRefused) {
  std::string bmp = sample_file("bmp_8");
  bmp[30] = 1;
  expect_refused(bmp, ErrorCode::kUnsupported, "the BMP is compressed (method 1)");
}

// Under the sanitizers this is where a decoder shows that it reads beyond its bytes.
TEST(Decode, DamagedBytesGiveAPictureOrASentence) {
  std::mt19937 random(29);
  ImageLimits limits;
  limits.pixels_max = 1 << 16;
  for (int round = 0; round < 40; ++round) {
    for (const Sample& sample : kSamples) {
      std::string bytes = file_of(sample);
      for (int i = 0; i < 1 + round % 4; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
      const Result<Image> image = decode_image(bytes, limits);
      if (image) {
        ASSERT_EQ(image->rgb.size(), 3 * size_t(image->width) * size_t(image->height)) << sample.name;
      } else {
        ASSERT_FALSE(image.error().message.empty()) << sample.name;
      }
    }
  }
}

}  // namespace
}  // namespace weir::media
