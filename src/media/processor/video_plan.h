// VideoPlan: what becomes of a video of so many frames of a given size: the size that each gets,
// the moments that they make, what stands for it in a prompt and where in time its moments lie.
// Known before a pixel is touched, as ImagePlan is.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "media/processor/frame_times.h"
#include "media/processor/image_plan.h"
#include "media/processor/processor.h"

namespace weir::media {

struct VideoPlan {
  ImagePlan frame{};    // Of each frame, and so of a moment: one view.
  FrameTimes times{};   // Of the frames as they came.
  int64_t moments = 0;  // The last frame is repeated until it ends one.
};

// REQUIRES: processor.video.taken, at least one frame, a rate above 0. Errors are plan_image()'s.
Result<VideoPlan> plan_video(const Processor& processor, Size frame, FrameTimes times);

// Takes the place of `processor.video.prompt`. The token `video.image` is in it token_count() of a
// frame's plan times for each moment.
std::string video_text(const Processor& processor, const VideoPlan& plan);

// How many positions in time a moment lies after the video's first.
int64_t moment_step(const Processor& processor, const VideoPlan& plan, int64_t moment);

}  // namespace weir::media
