#include "sound_fixture.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/concat.h"
#include "base/file.h"
#include "base/json.h"
#include "card/config_reader.h"
#include "card/safetensors.h"
#include "media/audio/decode_sound.h"
#include "media/features/sound_features.h"
#include "media/features/sound_plan.h"

namespace weir::check {

namespace {

namespace fs = std::filesystem;

// Recorded numbers are multiples of 2^-13; the rest is the rounding of float32, in which the
// references transform.
constexpr double kBound = 1.0 / (1 << 14) + 2e-5;
constexpr size_t kFileMax = size_t{1} << 20;

template <class T>
std::vector<T> read_tensor(const card::Checkpoint& file, std::string_view name, DType type) {
  const card::StoredTensor* stored = file.find(name);
  if (stored == nullptr || stored->tensor.type != type) return {};
  std::vector<T> values(static_cast<size_t>(stored->tensor.elements()));
  std::memcpy(values.data(), stored->tensor.data, values.size() * sizeof(T));
  return values;
}

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

std::vector<int64_t> runs_of(const std::vector<int64_t>& ids, int64_t id) {
  std::vector<int64_t> runs;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != id) continue;
    if (i == 0 || ids[i - 1] != id) runs.push_back(0);
    ++runs.back();
  }
  return runs;
}

int64_t sound_id(JsonValue config) {
  int64_t id = -1;
  for (const char* key : {"audio_token_id", "audio_token_index"})
    if (config[key].get(id) == simdjson::SUCCESS) break;
  return id;
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
  WEIR_ASSIGN(FileView view, FileView::map(folder + "/expected.safetensors"));
  WEIR_ASSIGN(const card::Checkpoint expected, card::open_safetensors(std::move(view)));
  WEIR_ASSIGN(const std::string text, read_file(folder + "/preprocessor_config.json", kFileMax));
  WEIR_ASSIGN(const JsonDoc preprocessor, card::parse_config(text));
  WEIR_ASSIGN(const std::string config_text, read_file(folder + "/config.json", kFileMax));
  WEIR_ASSIGN(const JsonDoc config, card::parse_config(config_text));
  WEIR_ASSIGN(fixture.front_end, media::read_front_end(preprocessor.root(), config.root()));
  WEIR_ASSIGN(const std::string bytes, read_file(path, kFileMax));
  WEIR_ASSIGN(fixture.sound, media::decode_sound(bytes, fixture.front_end.rate, {}));
  fixture.recorded = read_tensor<float>(expected, "audio", DType::kF32);
  const auto mels = static_cast<size_t>(fixture.front_end.mels);
  fixture.features = read_features(expected, mels);
  fixture.heard = heard_frames(expected, static_cast<int64_t>(fixture.features.size() / mels));
  const std::vector<int64_t> ids = read_tensor<int64_t>(expected, "input_ids", DType::kI64);
  fixture.sound_runs = runs_of(ids, sound_id(config.root()));
  read_encoded(expected, fixture);
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
