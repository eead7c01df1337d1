// SoundBuilder: takes the samples that a decoder finds, and makes a Sound of them: one channel, at
// the rate that is asked for, within the limits.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "media/audio/decode_sound.h"
#include "media/audio/resampler.h"
#include "media/audio/sound.h"

namespace weir::media {

class SoundBuilder {
 public:
  SoundBuilder(SoundFormat format, int rate, const SoundLimits& limits)
      : format_(format), rate_(rate), limits_(limits) {}

  // What the file's header says: `frames`, samples of each channel, where it is known. Once, first.
  Result<void> begin(int64_t channels, int64_t rate, std::optional<int64_t> frames);
  // Whole frames, with channels side by side. REQUIRES: begin() was right.
  Result<void> add(std::span<const float> samples);
  // An error if there were none, or fewer than begin() was told.
  Result<Sound> finish();

  size_t channels() const { return static_cast<size_t>(channels_); }

 private:
  tl::unexpected<Error> too_long(std::string_view seconds) const;
  // Memory for the samples of the first `frames` of the file, or of more.
  Result<void> admit(int64_t frames);

  SoundFormat format_;
  int rate_;
  SoundLimits limits_;
  int channels_ = 0;
  int file_rate_ = 0;
  std::optional<int64_t> stated_{};
  int64_t frames_ = 0, admitted_ = 0;
  std::optional<Resampler> resampler_{};
  std::vector<float> mixed_{};
  std::vector<float> samples_{};
};

}  // namespace weir::media
