// SoundPlan: what becomes of a sound of a given length: its frames and its rows of features. Known
// from the length alone, so that a prompt can be counted, and refused, before anything is computed.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "media/features/front_end.h"

namespace weir::media {

struct SoundPlan {
  int64_t samples = 0;
  int64_t padded = 0;  // With the zeros after them.
  int64_t frames = 0;
  int64_t heard = 0;  // Frames from the first on that the encoder attends to.
  int64_t rows = 0;   // Of features: tokens in a prompt, or what Whisper's decoder looks at.
};

// `samples` at the front end's rate. kInvalid for a sound that is too short to be heard; kTooLarge
// for one that is longer than an encoder takes, where the reference drops what is too much.
Result<SoundPlan> plan_sound(const FrontEnd& front_end, int64_t samples);

// Takes the place of `front_end.placeholder.prompt`. The token `placeholder.sound` is in it once
// for each row of features.
std::string placeholder_text(const FrontEnd& front_end, const SoundPlan& plan);

}  // namespace weir::media
