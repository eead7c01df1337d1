// SoundFeatures: what an encoder reads of a sound, as float32: the loudness of bands of frequencies
// in each frame.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "media/features/front_end.h"
#include "media/features/sound_plan.h"

namespace weir::media {

struct SoundFeatures {
  int64_t frames = 0;
  int64_t heard = 0;             // The first of them that the encoder attends to.
  std::vector<float> numbers{};  // [frames, mels].
};

// REQUIRES: the plan was made for this front end and as many samples, which are at its rate.
SoundFeatures sound_features(const FrontEnd& front_end, const SoundPlan& plan,
                             std::span<const float> samples);

}  // namespace weir::media
