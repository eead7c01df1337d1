#include "media/processor/video_plan.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/check.h"

namespace weir::media {
namespace {

// The middle of its first and its last frame, in seconds.
double time_of(const Processor& processor, const VideoPlan& plan, int64_t moment) {
  const auto frame_time = [&](int64_t frame) {
    return plan.times.seconds[static_cast<size_t>(std::min(frame, plan.times.count() - 1))];
  };
  const int64_t first = moment * processor.frames;
  return (frame_time(first) + frame_time(first + processor.frames - 1)) / 2;
}

}  // namespace

Result<VideoPlan> plan_video(const Processor& processor, Size frame, FrameTimes times) {
  const VideoRules& video = processor.video;
  const int64_t frames = times.count();
  CHECK(video.taken && frames > 0 && times.rate > 0);
  VideoPlan plan{.times = std::move(times)};
  plan.moments = (frames + processor.frames - 1) / processor.frames;
  Processor of_frame = processor;
  of_frame.pixels_min = video.pixels_min;
  of_frame.pixels_max = video.pixels_max;
  if (video.together) {
    const int64_t counted = std::max<int64_t>(frames, processor.frames);
    WEIR_ASSIGN(const Size size,
                within_frame_pixels(frame, counted, processor.frames, processor.unit,
                                    video.pixels_min, video.pixels_max));
    of_frame.sizing = Sizing::kFixed;
    of_frame.width = static_cast<int>(std::min(size.width, kViewPixelsMax + 1));
    of_frame.height = static_cast<int>(std::min(size.height, kViewPixelsMax + 1));
  }
  WEIR_ASSIGN(plan.frame, plan_image(of_frame, frame));
  WEIR_TRY(check_views(processor, frame, plan.frame));
  return plan;
}

std::string video_text(const Processor& processor, const VideoPlan& plan) {
  const VideoRules& video = processor.video;
  const int64_t tokens = token_count(processor, plan.frame);
  std::string out;
  for (int64_t moment = 0; moment < plan.moments; ++moment) {
    if (video.times) {
      char time[64];
      std::snprintf(time, sizeof time, "<%.1f seconds>", time_of(processor, plan, moment));
      out += time;
    }
    out += video.before;
    for (int64_t i = 0; i < tokens; ++i) out += video.image;
    out += video.after;
  }
  return out;
}

int64_t moment_step(const Processor& processor, const VideoPlan& plan, int64_t moment) {
  const double steps = processor.video.steps_per_second;
  if (processor.video.times) return 0;
  if (steps == 0) return moment;
  // Seconds of a moment are float32 in the reference, and so is the product.
  const auto seconds = static_cast<float>(processor.frames / plan.times.rate);
  return static_cast<int64_t>(static_cast<float>(moment) * seconds * static_cast<float>(steps));
}

}  // namespace weir::media
