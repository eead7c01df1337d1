// FrontEnd: what a model hears of a sound, as data: how samples are cut into frames, which
// frequencies are measured in each, how many rows of features come of it and what stands for them
// in a prompt. Read from the files that a model comes with; plan_sound(), sound_features() and
// placeholder_text() do what it says.
//
// Threads: a value, shared once it is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::media {

// Where frames lie (sound_features.cpp has how they are cut).
enum class Framing : uint8_t {
  kCentred,  // Around every hop, the sound mirrored at both ends: Whisper.
  kCausal    // From every hop on, after `lead` zeros: Gemma.
};

enum class Preemphasis : uint8_t {
  kNone,
  kWithinFrame,  // From each sample its predecessor in the frame is taken; HTK's.
  kAcrossFrames  // The first sample has a predecessor too, so all are those one later.
};

enum class MelScale : uint8_t {
  kSlaney,  // A line up to 1 kHz, then logarithmic; bands of equal area.
  kHtk      // Logarithmic throughout; bands of equal height.
};

// What is made of a band's sum of frequencies.
enum class Loudness : uint8_t {
  kRange,     // Of powers: log10, from the loudest of the whole sound 8 down, scaled to about 2.
  kAtLeast,   // Of magnitudes: log(max(sum, floor)): gemma3n.
  kAboveZero  // Of magnitudes: log(sum + floor): gemma4.
};

// How many rows of features come of frames (sound_plan.cpp).
enum class RowCount : uint8_t {
  kHalved,     // Of all frames, silence included: Whisper's encoder.
  kPooled,     // Of the frames that were heard, a quarter: qwen2_audio.
  kFixed,      // `rows_max`, whatever the sound: gemma3n.
  kSubsampled  // Of the frames that were heard, halved twice, up to `rows_max`: gemma4.
};

struct SoundPlaceholder {
  std::string prompt{};  // What a template writes where a sound is; empty: sounds are in no prompt.
  std::string sound{};   // The token for which a row of features stands.
  std::string before{};
  std::string after{};
};

struct FrontEnd {
  int rate = 16000;  // Samples a second. All lengths below are in samples.
  int hop = 160;     // From frame to frame.
  int frame = 400;   // Samples of a frame, in a Hann window.
  int fft = 400;     // Points of its transform; zeros follow the frame.
  Framing framing = Framing::kCentred;
  int lead = 0;             // Zeros before the sound.
  int64_t multiple = 1;     // Zeros follow up to a multiple of it.
  int64_t samples_max = 0;  // Of one sound; a longer one is more than the encoder takes.

  float scale = 1;  // Of samples, at first.
  Preemphasis preemphasis = Preemphasis::kNone;
  float emphasis = 0;

  int mels = 80;  // Bands, which are the numbers of a frame.
  MelScale mel_scale = MelScale::kSlaney;
  double hertz_min = 0;
  double hertz_max = 8000;
  Loudness loudness = Loudness::kRange;
  double floor = 1e-10;
  std::vector<float> mean{};       // Of each band; what is left of it is divided by its
  std::vector<float> deviation{};  // deviation. Empty: neither.
  bool unheard_zero = false;       // Frames that reach beyond the sound become zeros.

  RowCount row_count = RowCount::kHalved;
  int64_t rows_max = 0;
  SoundPlaceholder placeholder{};
};

// Of preprocessor_config.json (or processor_config.json, which has the same within) and
// config.json. kUnsupported for a family that has no front end here; kConfig names the key that is
// wrong.
Result<FrontEnd> read_front_end(JsonValue preprocessor, JsonValue config);

}  // namespace weir::media
