// FrameTimes: when the frames of a video are shown that a model sees, and which frames of a video's
// file those are.
//
// Threads: values; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "media/processor/processor.h"

namespace weir::media {

struct FrameTimes {
  std::vector<double> seconds{};  // Of each, from the video's beginning.
  double rate = 0;                // Frames a second, on the average.

  int64_t count() const { return static_cast<int64_t>(seconds.size()); }
};

// One after another, so many a second.
FrameTimes even_frames(int64_t count, double rate);

struct SampledFrames {
  std::vector<int64_t> indices{};  // In the file, ascending, none twice; at least one.
  FrameTimes times{};
};

// Which of `frames` frames of a file, of which `rate` make a second, the reference takes, and what it
// takes for their times. `wanted`: how many a second; none: as the model's files say. REQUIRES:
// processor.video.taken, at least one frame, rates above 0.
SampledFrames sample_frames(const Processor& processor, int64_t frames, double rate,
                            std::optional<double> wanted);

}  // namespace weir::media
