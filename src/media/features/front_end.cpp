// The families' front ends, one function each: which keys they read, and what the reference takes
// where a key is missing.
#include "media/features/front_end.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/concat.h"
#include "card/config_reader.h"
#include "media/features/spectrum.h"

namespace weir::media {
namespace {

using card::ConfigReader;

// Beyond these no file of use goes: four times the longest frame known, ten times the longest
// sound, twice the most bands.
constexpr int kFrameMax = 4096;
constexpr int kSecondsMax = 300;
constexpr int kMelsMax = 256;
constexpr int kRateMin = 8000, kRateMax = 48000;
constexpr int kRowsMax = 1 << 16;

// The two files, and what of config.json the families look into.
struct Files {
  ConfigReader features;
  ConfigReader config;
  std::optional<ConfigReader> tower;      // audio_config.
  std::optional<ConfigReader> processor;  // The file around `features`, if there is one.
};

// What is computed is right for 0 only.
void expect_zero(const ConfigReader& reader, std::string_view key) {
  const std::optional<JsonValue> found = reader.value(key);
  double number = 0;
  if (found && (found->get(number) != simdjson::SUCCESS || number != 0))
    reader.wrong_type(key, "0", *found);
}

void expect_kind(const ConfigReader& reader, std::string_view kind) {
  constexpr std::string_view kKey = "feature_extractor_type";
  const std::string found = reader.string_or(kKey, kind);
  if (found != kind) reader.wrong_type(kKey, kind, *reader.value(kKey));
}

// What all have: the rate, and that zeros follow a sound, nothing is random, and the mask of what
// was heard is made by rule.
void read_rate(FrontEnd& out, const ConfigReader& reader, int mels) {
  out.rate = reader.int_or("sampling_rate", 16000, kRateMin, kRateMax);
  out.mels = reader.int_or("feature_size", mels, 1, kMelsMax);
  expect_zero(reader, "padding_value");
  expect_zero(reader, "dither");
  if (reader.string_or("padding_side", "right") != "right")
    reader.wrong_type("padding_side", "right", *reader.value("padding_side"));
}

void check_fft(const FrontEnd& out, const ConfigReader& reader, std::string_view key) {
  if (Spectrum::computes(out.fft)) return;
  reader.reject(concat({"'", key,
                        "': expected an even number whose half is a product of 2, 3 and "
                        "5, found ",
                        std::to_string(out.fft)}));
}

// `mels` where config.json says nothing.
void expect_mels(const FrontEnd& out, const ConfigReader& reader, std::string_view key, int mels) {
  const int expected = reader.int_or(key, mels);
  if (expected != out.mels)
    reader.reject(concat({"'", key, "': expected preprocessor_config.json's 'feature_size' (",
                          std::to_string(out.mels), "), found ", std::to_string(expected)}));
}

// Whisper's. `tower` has the encoder's sizes: its positions are half of the frames.
FrontEnd read_log_mel(const Files& files, const ConfigReader& tower, int mels) {
  const ConfigReader& reader = files.features;
  FrontEnd out;
  expect_kind(reader, "WhisperFeatureExtractor");
  read_rate(out, reader, mels);
  reader.expect_bool("do_normalize", false);
  out.hop = reader.int_or("hop_length", 160, 16, kFrameMax);
  out.frame = out.fft = reader.int_or("n_fft", 400, 16, kFrameMax);
  check_fft(out, reader, "n_fft");
  out.samples_max = int64_t{reader.int_or("chunk_length", 30, 1, kSecondsMax)} * out.rate;
  out.multiple = out.samples_max;
  const auto frames = static_cast<int>(out.samples_max / out.hop);
  // Both follow from what was read, and are written beside it.
  reader.expect_int("n_samples", static_cast<int>(out.samples_max));
  reader.expect_int("nb_max_frames", frames);
  expect_mels(out, tower, "num_mel_bins", mels);
  const int positions = tower.int_or("max_source_positions", 1500);
  if (positions != frames / 2)
    tower.reject(concat({"'max_source_positions': expected half of the ", std::to_string(frames),
                         " frames of 'chunk_length', found ", std::to_string(positions)}));
  return out;
}

FrontEnd read_whisper(const Files& files) {
  FrontEnd out = read_log_mel(files, files.config, 80);
  out.rows_max = out.samples_max / out.hop / 2;
  return out;
}

// Templates write what is before and after the sound's tokens.
FrontEnd read_qwen2_audio(const Files& files) {
  FrontEnd out = read_log_mel(files, files.tower.value_or(files.config), 128);
  out.row_count = RowCount::kPooled;
  out.rows_max = out.samples_max / out.hop / 4;
  out.placeholder = {.prompt = "<|AUDIO|>", .sound = "<|AUDIO|>"};
  return out;
}

// What the reference's call takes by default: no file has it.
constexpr int kGemmaSamplesMax = 480'000;
constexpr int kGemmaMultiple = 128;

struct GemmaDefaults {
  double frame_ms = 0;
  bool double_fft = false;
  double hertz_min = 0;
  double hertz_max = 0;
  double emphasis = 0;
  double floor = 0;
};

// Milliseconds to samples, halves to even as Python rounds.
int samples_of(const ConfigReader& reader, std::string_view key, double fallback, int rate) {
  const double ms = reader.number(key, 1, 250).value_or(fallback);
  const auto samples = static_cast<int>(std::nearbyint(rate * ms / 1000));
  if (samples > kFrameMax)
    reader.reject(concat({"'", key, "': expected at most ", std::to_string(kFrameMax),
                          " samples, found ", std::to_string(samples)}));
  return samples;
}

// A number for each band whose size is from `least` to a million, or none.
std::vector<float> read_bands(const FrontEnd& out, const ConfigReader& reader, std::string_view key,
                              float least) {
  std::vector<float> numbers = reader.floats(key);
  if (numbers.empty()) return numbers;
  const auto useful = [&](float number) {
    return std::fabs(number) >= least && std::fabs(number) <= 1e6f;
  };
  if (numbers.size() == static_cast<size_t>(out.mels) && std::ranges::all_of(numbers, useful))
    return numbers;
  reader.wrong_type(key,
                    concat({std::to_string(out.mels), " numbers of a size from ",
                            least > 0 ? "1e-6" : "0", " to 1e6"}),
                    *reader.value(key));
  return {};
}

void read_emphasis(FrontEnd& out, const ConfigReader& reader, double fallback) {
  out.emphasis = static_cast<float>(reader.number("preemphasis", 0, 1).value_or(fallback));
  const bool htk = reader.bool_or("preemphasis_htk_flavor", true);
  if (out.emphasis > 0)
    out.preemphasis = htk ? Preemphasis::kWithinFrame : Preemphasis::kAcrossFrames;
}

FrontEnd read_gemma(const Files& files, const GemmaDefaults& defaults) {
  const ConfigReader& reader = files.features;
  FrontEnd out;
  read_rate(out, reader, 128);
  out.framing = Framing::kCausal;
  out.mel_scale = MelScale::kHtk;
  out.frame = samples_of(reader, "frame_length_ms", defaults.frame_ms, out.rate);
  out.hop = samples_of(reader, "hop_length_ms", 10, out.rate);
  out.fft = 2;
  while (out.fft < out.frame) out.fft *= 2;
  if (reader.bool_or("fft_overdrive", defaults.double_fft)) out.fft *= 2;
  reader.expect_int("fft_length", out.fft);
  out.samples_max = kGemmaSamplesMax;
  out.multiple = kGemmaMultiple;
  out.scale = static_cast<float>(reader.number("input_scale_factor", 1e-6, 1e6).value_or(1));
  read_emphasis(out, reader, defaults.emphasis);
  out.hertz_min = reader.number("min_frequency", 0, out.rate).value_or(defaults.hertz_min);
  out.hertz_max = reader.number("max_frequency", 1, out.rate).value_or(defaults.hertz_max);
  // Below, neighbouring bands would begin and end at the same number.
  if (out.hertz_min > out.hertz_max - 1)
    reader.reject("'min_frequency': expected at least 1 less than 'max_frequency'");
  out.floor = reader.number("mel_floor", 1e-30, 1).value_or(defaults.floor);
  out.mean = read_bands(out, reader, "per_bin_mean", 0);
  out.deviation = read_bands(out, reader, "per_bin_stddev", 1e-6f);
  return out;
}

FrontEnd read_gemma3n(const Files& files) {
  FrontEnd out = read_gemma(files, {.frame_ms = 32,
                                    .double_fft = true,
                                    .hertz_min = 125,
                                    .hertz_max = 7600,
                                    .emphasis = 0.97,
                                    .floor = 1e-5});
  expect_kind(files.features, "Gemma3nAudioFeatureExtractor");
  if (files.tower) expect_mels(out, *files.tower, "input_feat_size", 128);
  out.loudness = Loudness::kAtLeast;
  out.row_count = RowCount::kFixed;
  out.rows_max = files.config.int_or("audio_soft_tokens_per_image", 188, 1, kRowsMax);
  if (files.processor)
    files.processor->expect_int("audio_seq_length", static_cast<int>(out.rows_max));
  out.placeholder = {.prompt = "<audio_soft_token>",
                     .sound = "<audio_soft_token>",
                     .before = "\n\n<start_of_audio>",
                     .after = "<end_of_audio>\n\n"};
  return out;
}

FrontEnd read_gemma4(const Files& files) {
  FrontEnd out =
      read_gemma(files, {.frame_ms = 20, .hertz_min = 0, .hertz_max = 8000, .floor = 1e-3});
  expect_kind(files.features, "Gemma4AudioFeatureExtractor");
  out.lead = out.frame / 2;
  out.loudness = Loudness::kAboveZero;
  out.unheard_zero = true;
  out.row_count = RowCount::kSubsampled;
  out.rows_max =
      files.processor ? files.processor->int_or("audio_seq_length", 750, 1, kRowsMax) : 750;
  out.placeholder = {
      .prompt = "<|audio|>", .sound = "<|audio|>", .before = "<|audio>", .after = "<audio|>"};
  return out;
}

struct Family {
  std::string_view model_type;
  FrontEnd (*read)(const Files& files);
};

constexpr std::array kFamilies = {
    Family{"whisper", read_whisper},
    Family{"qwen2_audio", read_qwen2_audio},
    Family{"gemma3n", read_gemma3n},
    Family{"gemma4", read_gemma4},
};

}  // namespace

Result<FrontEnd> read_front_end(JsonValue preprocessor, JsonValue config) {
  const char* kFile = "preprocessor_config.json";
  JsonObject object;
  std::optional<JsonValue> within;
  if (preprocessor.get(object) == simdjson::SUCCESS) within = json_get(object, "feature_extractor");
  const ConfigReader reader(config);
  Files files = {
      ConfigReader(within.value_or(preprocessor), kFile), reader, reader.child("audio_config"), {}};
  if (within) files.processor = ConfigReader(preprocessor, kFile);
  const std::string type = reader.string_or("model_type", "");
  WEIR_TRY(reader.status());
  WEIR_TRY(files.features.status());
  for (const Family& family : kFamilies) {
    if (family.model_type != type) continue;
    FrontEnd front_end = family.read(files);
    WEIR_TRY(files.features.status());
    WEIR_TRY(reader.status());
    if (files.processor) WEIR_TRY(files.processor->status());
    return front_end;
  }
  return fail(ErrorCode::kUnsupported, concat({"config.json: sounds of the family \"",
                                               type.substr(0, 60), "\" are not computed"}));
}

}  // namespace weir::media
