// PixelValues: what a tower reads of a picture, as float32.
//
// Threads: pure functions.
#pragma once

#include <span>
#include <vector>

#include "media/image/image.h"
#include "media/processor/image_plan.h"
#include "media/processor/processor.h"

namespace weir::media {

struct PixelValues {
  std::vector<float> numbers{};  // One view after another, each as PixelLayout has it.
  std::vector<Size> views{};     // Their sizes in pixels.
};

// REQUIRES: the plan was made for this processor and the picture's size.
PixelValues pixel_values(const Processor& processor, const ImagePlan& plan, const Image& image);

// Of one moment of a video: as many frames as a patch has. REQUIRES: PixelLayout::kBlocks, a plan of
// plan_video() for frames of their one size.
PixelValues moment_values(const Processor& processor, const ImagePlan& plan,
                          std::span<const Image* const> frames);

}  // namespace weir::media
