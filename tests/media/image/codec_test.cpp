// One picture in several formats: a photograph, as it were, of slopes, edges and grain. Whatever it
// was stored as, it becomes as many tokens, and what a tower reads of it differs by no more than the
// codec has lost.
#include <gtest/gtest.h>
#include <turbojpeg.h>
#include <webp/encode.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "card/config_reader.h"
#include "media/image/decode.h"
#include "media/processor/image_plan.h"
#include "media/processor/pixel_values.h"

namespace weir::media {
namespace {

Image photograph(int width, int height) {
  Image image(width, height);
  std::mt19937 random(5);
  std::normal_distribution<double> grain(0, 2);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const double u = double(x) / width, v = double(y) / height;
      const bool in_front = std::hypot(u - 0.6, v - 0.5) < 0.25 + 0.05 * std::sin(12 * u);
      const double light = in_front ? 60 + 90 * u : 120 + 80 * v + 20 * std::sin(9 * u * v);
      for (int c = 0; c < 3; ++c) {
        const double value = light * (1 - 0.15 * c * (in_front ? -1 : 1)) + grain(random);
        image.rgb[static_cast<size_t>(3 * (y * width + x) + c)] =
            static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  return image;
}

std::string as_jpeg(const Image& image, int quality) {
  const tjhandle encoder = tjInitCompress();
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  EXPECT_EQ(tjCompress2(encoder, image.rgb.data(), image.width, 0, image.height, TJPF_RGB, &bytes,
                        &size, TJSAMP_444, quality, 0),
            0);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  tjFree(bytes);
  tjDestroy(encoder);
  return file;
}

// `quality` 100 and more: without loss.
std::string as_webp(const Image& image, float quality) {
  uint8_t* bytes = nullptr;
  const size_t size = quality >= 100 ? WebPEncodeLosslessRGB(image.rgb.data(), image.width, image.height,
                                                             3 * image.width, &bytes)
                                     : WebPEncodeRGB(image.rgb.data(), image.width, image.height,
                                                     3 * image.width, quality, &bytes);
  std::string file(reinterpret_cast<const char*>(bytes), size);
  WebPFree(bytes);
  return file;
}

// The root of the mean square of what numbers differ by.
double apart(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::pow(double{a[i]} - double{b[i]}, 2);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

TEST(Codec, APictureIsTheSameInEveryFormat) {
  const Image picture = photograph(320, 240);
  // A step of a byte, after a scale by 1/255 and a deviation of half: 0.0078. Codecs of this quality
  // lose some bytes' steps of grain.
  constexpr double kLost = 4 * 2.0 / 255;
  for (const char* config :
       {R"({"model_type": "qwen2_vl"})", R"({"model_type": "gemma3"})", R"({"model_type": "smolvlm"})",
        R"({"model_type": "internvl"})", R"({"model_type": "lfm2_vl"})"}) {
    const JsonDoc preprocessor = *card::parse_config(
        R"({"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})");
    const JsonDoc family = *card::parse_config(config);
    const Processor processor = *read_processor(preprocessor.root(), family.root());
    const ImagePlan plan = *plan_image(processor, {picture.width, picture.height});
    const std::vector<float> expected = pixel_values(processor, plan, picture).numbers;
    const auto read = [&](const std::string& file) {
      const Image image = *decode_image(file, {});
      const ImagePlan own = *plan_image(processor, {image.width, image.height});
      EXPECT_EQ(token_count(processor, own), token_count(processor, plan)) << config;
      return pixel_values(processor, own, image).numbers;
    };
    EXPECT_EQ(read(as_webp(picture, 100)), expected) << config;
    for (const std::string& lossy : {as_jpeg(picture, 95), as_webp(picture, 95)}) {
      const double lost = apart(read(lossy), expected);
      EXPECT_GT(lost, 0) << config;
      EXPECT_LT(lost, kLost) << config;
    }
  }
}

}  // namespace
}  // namespace weir::media
