// SoundFixture: a sound, a model's files that say how it is heard, and what the reference made of
// it. Used by weir-check and by the tests.
//
// Threads: a value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "media/audio/sound.h"
#include "media/features/front_end.h"

namespace weir::check {

struct SoundFixture {
  std::string name;
  media::FrontEnd front_end{};
  media::Sound sound{};               // audio.wav as this build decodes it,
  std::vector<float> recorded{};      // and as the reference did.
  std::vector<float> features{};      // The reference's, [frames, mels].
  int64_t heard = 0;                  // Frames that its mask has, or all of them.
  std::vector<float> encoded{};       // What its encoder gave, where that was recorded.
  std::vector<int64_t> sound_runs{};  // Lengths of the runs of sound tokens in the prompt.
  int64_t rows = 0;                   // Of the encoder's output, where it was recorded.

  // Of a fixture's folder. kUnsupported where there is no sound in it.
  static Result<SoundFixture> open(const std::string& folder);
};

struct SoundComparison {
  double difference = 0;  // To the features, the largest.
  int64_t frames = 0;
  int64_t rows = 0;
  std::string failure{};  // What is wrong, or nothing.
};

SoundComparison compare_sounds(const SoundFixture& fixture);

}  // namespace weir::check
