#include "sound_fixture.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/concat.h"
#include "base/file.h"
#include "media/audio/decode_sound.h"
#include "media/features/sound_features.h"
#include "media/features/sound_plan.h"
#include "media_fixture.h"

namespace weir::check {

namespace {

namespace fs = std::filesystem;

// Recorded numbers are multiples of 2^-13; the rest is the rounding of float32, in which the
// references transform.
constexpr double kBound = 1.0 / (1 << 14) + 2e-5;

// [frames, mels]; Whisper's lie the other way round.
std::vector<float> read_features(const card::Checkpoint& file, size_t mels) {
  const std::vector<float> stored = read_tensor<float>(file, "input_features", DType::kF32);
  if (stored.empty() || file.find("input_features")->tensor.shape[2] == int64_t(mels))
    return stored;
  const size_t frames = stored.size() / mels;
  std::vector<float> features(stored.size());
  for (size_t mel = 0; mel < mels; ++mel)
    for (size_t i = 0; i < frames; ++i) features[i * mels + mel] = stored[mel * frames + i];
  return features;
}

int64_t heard_frames(const card::Checkpoint& file, int64_t frames) {
  const auto numbers = read_tensor<int32_t>(file, "feature_attention_mask", DType::kI32);
  if (!numbers.empty()) return std::ranges::count(numbers, 1);
  const auto flags = read_tensor<uint8_t>(file, "input_features_mask", DType::kBool);
  return flags.empty() ? frames : std::ranges::count(flags, 1);
}

// What the encoder gave: its rows, and their numbers.
void read_encoded(const card::Checkpoint& file, SoundFixture& fixture) {
  for (const char* name : {"audio_features", "encoder_hidden"})
    if (const card::StoredTensor* rows = file.find(name)) {
      fixture.rows = rows->tensor.shape[1];
      fixture.encoded = read_tensor<float>(file, name, DType::kF32);
    }
}

double difference(const std::vector<float>& ours, const std::vector<float>& theirs) {
  if (ours.size() != theirs.size()) return HUGE_VAL;
  double largest = 0;
  for (size_t i = 0; i < theirs.size(); ++i)
    largest = std::max<double>(largest, std::fabs(theirs[i] - ours[i]));
  return largest;
}

std::string wrong(const char* what, int64_t found, int64_t expected) {
  return concat({std::to_string(found), " ", what, ", expected ", std::to_string(expected)});
}

}  // namespace

Result<SoundFixture> SoundFixture::open(const std::string& folder) {
  SoundFixture fixture;
  fixture.name = fs::path(folder).filename().string();
  const std::string path = folder + "/audio.wav";
  if (!fs::exists(path)) return fail(ErrorCode::kUnsupported, "it has no sound");
  WEIR_ASSIGN(const MediaFiles files, MediaFiles::open(folder));
  WEIR_ASSIGN(fixture.front_end,
              media::read_front_end(files.preprocessor.root(), files.config.root()));
  WEIR_ASSIGN(const std::string bytes, read_file(path, kFixtureFileMax));
  WEIR_ASSIGN(fixture.sound, media::decode_sound(bytes, fixture.front_end.rate, {}));
  fixture.recorded = read_tensor<float>(files.expected, "audio", DType::kF32);
  const auto mels = static_cast<size_t>(fixture.front_end.mels);
  fixture.features = read_features(files.expected, mels);
  fixture.heard =
      heard_frames(files.expected, static_cast<int64_t>(fixture.features.size() / mels));
  fixture.sound_runs = files.placeholder_runs("audio");
  read_encoded(files.expected, fixture);
  return fixture;
}

SoundComparison compare_sounds(const SoundFixture& fixture) {
  SoundComparison out;
  const std::vector<float>& samples = fixture.sound.samples;
  const auto plan = media::plan_sound(fixture.front_end, static_cast<int64_t>(samples.size()));
  if (!plan) return {.failure = plan.error().message};
  const media::SoundFeatures features = media::sound_features(fixture.front_end, *plan, samples);
  out.frames = features.frames;
  out.rows = plan->rows;
  out.difference = difference(features.numbers, fixture.features);
  // Whisper's sounds are in no prompt.
  const bool prompted = !fixture.front_end.placeholder.prompt.empty();
  if (fixture.recorded != samples) {
    out.failure = "the decoded sound is another than the recorded one";
  } else if (!(out.difference <= kBound)) {
    out.failure = concat({"input_features differ by ", std::to_string(out.difference),
                          ", more than ", std::to_string(kBound)});
  } else if (prompted && features.heard != fixture.heard) {
    out.failure = wrong("frames are heard", features.heard, fixture.heard);
  } else if (prompted && fixture.sound_runs != std::vector<int64_t>{out.rows}) {
    out.failure = "the sound's tokens lie otherwise than in the recorded prompt";
  } else if (fixture.rows != 0 && out.rows != fixture.rows) {
    out.failure = wrong("rows of features", out.rows, fixture.rows);
  }
  return out;
}

}  // namespace weir::check
