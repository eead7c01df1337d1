// ImageFixture: pictures, a model's files that say how they are processed, and what the reference
// made of them. Used by weir-check and by the tests.
//
// Threads: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "media/image/image.h"
#include "media/processor/processor.h"

namespace weir::check {

struct ImageFixture {
  std::string name;
  media::Processor processor{};
  std::vector<media::Image> pictures{};    // image.png, image2.png as this build decodes them,
  std::vector<media::Image> recorded{};    // and as the reference did.
  std::vector<float> pixel_values{};       // By torchvision's arithmetic,
  std::vector<float> pixel_values_pil{};   // and by Pillow's, where the two differ.
  std::vector<int64_t> image_runs{};       // Lengths of the runs of image tokens in the prompt.
  int64_t features = 0;                    // Rows of the tower's output, where it was recorded.

  // Of a fixture's folder. kUnsupported where there is no picture in it.
  static Result<ImageFixture> open(const std::string& folder);
};

struct ImageComparison {
  double difference = 0;      // To pixel_values, the largest.
  double pil_difference = 0;  // To pixel_values_pil.
  int64_t tokens = 0;
  std::string failure{};  // What is wrong, or nothing.
};

ImageComparison compare_images(const ImageFixture& fixture);

}  // namespace weir::check
