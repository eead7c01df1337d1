#include "media/processor/frame_times.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace weir::media {
namespace {

// From the first frame to the last at equal distances, rounded to even numbers at halves
// (numpy.linspace and round).
int64_t between_ends(int64_t i, int64_t count, int64_t frames) {
  if (count == 1) return 0;
  if (i == count - 1) return frames - 1;
  const double step = static_cast<double>(frames - 1) / static_cast<double>(count - 1);
  return static_cast<int64_t>(std::nearbyint(static_cast<double>(i) * step));
}

// The first of each of as many equal parts (torch.arange, whose numbers are float32, cut).
int64_t first_of_part(int64_t i, int64_t count, int64_t frames) {
  const double step = static_cast<double>(frames) / static_cast<double>(count);
  const auto at = static_cast<int64_t>(static_cast<float>(static_cast<double>(i) * step));
  return std::min(at, frames - 1);
}

// In the references' order of operations, for their numbers are cut.
int64_t sampled_count(const Processor& processor, int64_t frames, double rate, double wanted) {
  const VideoRules& video = processor.video;
  const double found = static_cast<double>(frames) / rate * wanted;
  const int64_t whole = processor.frames;
  if (video.to_the_end) {
    // Beyond the number of frames it makes no difference how many are asked for.
    const auto count = static_cast<int64_t>(std::min(found, static_cast<double>(frames)));
    return std::min({std::max(count, video.frames_min), video.frames_max, frames});
  }
  const int64_t most = std::min(video.frames_max, frames) / whole * whole;
  const double count = std::min(std::max(found, static_cast<double>(video.frames_min)),
                                static_cast<double>(most));
  return static_cast<int64_t>(count) / whole * whole;
}

}  // namespace

FrameTimes even_frames(int64_t count, double rate) {
  FrameTimes times{.rate = rate};
  for (int64_t i = 0; i < count; ++i) times.seconds.push_back(static_cast<double>(i) / rate);
  return times;
}

SampledFrames sample_frames(const Processor& processor, int64_t frames, double rate,
                            std::optional<double> wanted) {
  const VideoRules& video = processor.video;
  CHECK(video.taken && frames > 0 && rate > 0);
  // Where a file has fewer frames than a moment, the references take none, or fail.
  const int64_t count =
      std::max<int64_t>(sampled_count(processor, frames, rate, wanted.value_or(video.rate)), 1);
  SampledFrames out;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index =
        video.to_the_end ? between_ends(i, count, frames) : first_of_part(i, count, frames);
    out.indices.push_back(index);
    out.times.seconds.push_back(static_cast<double>(index) / rate);
  }
  out.times.rate = static_cast<double>(count) / static_cast<double>(frames) * rate;
  return out;
}

}  // namespace weir::media
