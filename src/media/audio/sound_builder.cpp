#include "media/audio/sound_builder.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/concat.h"
#include "media/audio/decoders.h"

namespace weir::media {
namespace {

// Numbers beyond this are no sound: it is the most that an integer of 32 bits written as a float
// can be. The sums of squares that front ends make of such stay far below float32's largest.
constexpr float kSampleMax = 2147483648.0f;

// The mean of each frame's channels, in float32 and in their order, as NumPy's mean has it. The
// first frame that has a sample of no use, or how many there are.
size_t mix(std::span<const float> samples, size_t channels, std::vector<float>& out) {
  out.resize(samples.size() / channels);
  for (size_t frame = 0; frame < out.size(); ++frame) {
    float sum = 0;
    for (const float sample : samples.subspan(frame * channels, channels)) {
      if (!(std::fabs(sample) <= kSampleMax)) return frame;
      sum += sample;
    }
    out[frame] = sum / static_cast<float>(channels);
  }
  return out.size();
}

tl::unexpected<Error> no_number(SoundFormat format, int64_t frame, int rate) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.3f",
                static_cast<double>(frame) / static_cast<double>(rate));
  return damaged(format, concat({"after ", seconds,
                                 " s comes a sample that is not a number, or beyond 2^31"}));
}

}  // namespace

tl::unexpected<Error> SoundBuilder::too_long(std::string_view seconds) const {
  return fail(ErrorCode::kTooLarge,
              concat({"the ", format_name(format_), " lasts ", seconds, "; at most ",
                      std::to_string(limits_.seconds_max), " s are decoded"}));
}

Result<void> SoundBuilder::begin(int64_t channels, int64_t rate, std::optional<int64_t> frames) {
  const std::string the_file = concat({"the ", format_name(format_), " has "});
  if (channels < 1) return damaged(format_, "it says that it has no channel");
  if (channels > limits_.channels_max)
    return fail(ErrorCode::kTooLarge,
                concat({the_file, std::to_string(channels), " channels; at most ",
                        std::to_string(limits_.channels_max), " are decoded"}));
  if (rate < kFileRateMin || rate > kFileRateMax)
    return fail(ErrorCode::kMediaType,
                concat({the_file, std::to_string(rate), " samples a second; from ",
                        std::to_string(kFileRateMin), " to ", std::to_string(kFileRateMax),
                        " are decoded"}));
  if (frames && *frames > limits_.seconds_max * rate)
    return too_long(std::to_string((*frames - 1) / rate + 1) + " s");
  channels_ = static_cast<int>(channels);
  file_rate_ = static_cast<int>(rate);
  stated_ = frames;
  WEIR_ASSIGN(resampler_, Resampler::create(file_rate_, rate_));
  if (frames) WEIR_TRY(admit(*frames));
  // Memory that is not written to costs nothing, and a vector that grew would be there twice.
  const int64_t most = frames.value_or(limits_.seconds_max * rate);
  samples_.reserve(static_cast<size_t>(resampled_count(most, file_rate_, rate_)));
  return {};
}

Result<void> SoundBuilder::admit(int64_t frames) {
  if (frames <= admitted_ || !limits_.admit) return {};
  const int64_t minute = int64_t{60} * file_rate_;
  const int64_t until = std::min(stated_.value_or((frames / minute + 1) * minute),
                                 limits_.seconds_max * file_rate_);
  const int64_t more = resampled_count(until - std::exchange(admitted_, until), file_rate_, rate_);
  return limits_.admit(static_cast<size_t>(kDecodeBytesPerSample * more));
}

Result<void> SoundBuilder::add(std::span<const float> samples) {
  CHECK(resampler_ && samples.size() % channels() == 0);
  const size_t good = mix(samples, channels(), mixed_);
  if (good < mixed_.size())
    return no_number(format_, frames_ + static_cast<int64_t>(good), file_rate_);
  frames_ += static_cast<int64_t>(mixed_.size());
  if (frames_ > limits_.seconds_max * file_rate_) return too_long("longer");
  if (stated_ && frames_ > *stated_)
    return damaged(format_, concat({"it says that it has ", std::to_string(*stated_),
                                    " samples, and has more"}));
  WEIR_TRY(admit(frames_));
  resampler_->add(mixed_, samples_);
  return {};
}

Result<Sound> SoundBuilder::finish() {
  if (frames_ == 0)
    return fail(ErrorCode::kInvalid, concat({"the ", format_name(format_), " has no samples"}));
  if (stated_ && frames_ < *stated_)
    return fail(ErrorCode::kInvalid,
                concat({"the ", format_name(format_), " ends early: it says that it has ",
                        std::to_string(*stated_), " samples, and ", std::to_string(frames_),
                        " are there"}));
  resampler_->finish(samples_);
  return Sound{rate_, std::move(samples_)};
}

}  // namespace weir::media
