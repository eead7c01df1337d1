#include "media/features/front_end.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "card/config_reader.h"
#include "media/features/sound_features.h"
#include "media/features/sound_plan.h"

namespace weir::media {
namespace {

Result<FrontEnd> read(std::string_view preprocessor, std::string_view config) {
  const JsonDoc first = *card::parse_config(preprocessor), second = *card::parse_config(config);
  return read_front_end(first.root(), second.root());
}

FrontEnd of(std::string_view preprocessor, std::string_view config) {
  Result<FrontEnd> front_end = read(preprocessor, config);
  EXPECT_TRUE(front_end) << front_end.error().message;
  return front_end ? *front_end : FrontEnd{};
}

FrontEnd of_family(std::string_view family) {
  return of("{}", R"({"model_type": ")" + std::string(family) + R"("})");
}

void expect_refused(std::string_view preprocessor, std::string_view config, std::string_view part) {
  const Result<FrontEnd> front_end = read(preprocessor, config);
  ASSERT_FALSE(front_end) << part;
  EXPECT_NE(front_end.error().message.find(part), std::string::npos) << front_end.error().message;
}

// All frequencies, some louder than others: numbers that any program makes alike.
std::vector<float> rattle(int64_t count) {
  std::vector<float> samples;
  for (int64_t i = 0; i < count; ++i)
    samples.push_back(static_cast<float>((7919 * i * i + 104729 * i) % 65537 - 32768) / 65536);
  return samples;
}

SoundFeatures features_of(const FrontEnd& front_end, const std::vector<float>& samples) {
  const Result<SoundPlan> plan = plan_sound(front_end, static_cast<int64_t>(samples.size()));
  EXPECT_TRUE(plan) << plan.error().message;
  return sound_features(front_end, *plan, samples);
}

TEST(FrontEnd, AMissingKeyIsWhatTheReferenceTakes) {
  const FrontEnd whisper = of_family("whisper");
  EXPECT_EQ(whisper.mels, 80);
  EXPECT_EQ(whisper.fft, 400);
  EXPECT_EQ(whisper.samples_max, 480000);
  EXPECT_EQ(of_family("qwen2_audio").mels, 128);
  const FrontEnd gemma3n = of_family("gemma3n");
  EXPECT_EQ(gemma3n.frame, 512);
  EXPECT_EQ(gemma3n.fft, 1024);
  EXPECT_FLOAT_EQ(gemma3n.emphasis, 0.97f);
  EXPECT_EQ(gemma3n.preemphasis, Preemphasis::kWithinFrame);
  const FrontEnd gemma4 = of_family("gemma4");
  EXPECT_EQ(gemma4.frame, 320);
  EXPECT_EQ(gemma4.fft, 512);
  EXPECT_EQ(gemma4.lead, 160);
  EXPECT_EQ(gemma4.preemphasis, Preemphasis::kNone);
}

TEST(FrontEnd, IsReadFromWithinProcessorConfigToo) {
  const FrontEnd gemma = of(R"({"audio_seq_length": 20, "feature_extractor": {"mel_floor": 0.5},
                               "image_processor": {"mel_floor": 0.1}})",
                            R"({"model_type": "gemma4"})");
  EXPECT_EQ(gemma.floor, 0.5);
  EXPECT_EQ(plan_sound(gemma, 480000)->rows, 20);
}

TEST(FrontEnd, WhatIsNotComputedIsRefusedByName) {
  const char* kWhisper = R"({"model_type": "whisper"})";
  const char* kGemma = R"({"model_type": "gemma4"})";
  expect_refused("{}", R"({"model_type": "hubert"})",
                 "sounds of the family \"hubert\" are not computed");
  expect_refused(R"({"dither": 0.1})", kWhisper, "'dither': expected 0, found 0.1");
  expect_refused(R"({"do_normalize": true})", kWhisper, "'do_normalize'");
  expect_refused(R"({"padding_side": "left"})", kWhisper, "'padding_side': expected right");
  expect_refused(R"({"feature_extractor_type": "ClapFeatureExtractor"})", kWhisper,
                 "expected WhisperFeatureExtractor, found \"ClapFeatureExtractor\"");
  expect_refused(R"({"n_fft": 401})", kWhisper,
                 "'n_fft': expected an even number whose half is a product of 2, 3 and 5, found "
                 "401");
  expect_refused(R"({"n_fft": 1022})", kWhisper, "found 1022");
  expect_refused(R"({"n_samples": 16000})", kWhisper, "'n_samples': expected 480000, found 16000");
  expect_refused(R"({"chunk_length": 10})", kWhisper,
                 "'max_source_positions': expected half of the 1000 frames");
  expect_refused(R"({"feature_size": 128})", kWhisper,
                 "'num_mel_bins': expected preprocessor_config.json's 'feature_size' (128), found "
                 "80");
  expect_refused(R"({"fft_length": 1024})", kGemma, "'fft_length': expected 512, found 1024");
  expect_refused(R"({"min_frequency": 8000})", kGemma, "'min_frequency'");
  expect_refused(R"({"per_bin_mean": [1, 2]})", kGemma,
                 "'per_bin_mean': expected 128 numbers of a size from 0 to 1e6");
  expect_refused(R"({"per_bin_stddev": 0, "feature_size": 1})", kGemma, "'per_bin_stddev'");
  expect_refused(R"({"sampling_rate": 96000})", kGemma, "'sampling_rate'");
}

TEST(SoundPlan, CountsRows) {
  // A second; two, and a sample more; the most.
  const std::pair<const char*, std::vector<int64_t>> kRows[] = {
      {"whisper", {1500, 1500, 1500}},
      {"qwen2_audio", {25, 50, 750}},
      {"gemma3n", {188, 188, 188}},
      {"gemma4", {25, 50, 750}},
  };
  for (const auto& [family, rows] : kRows) {
    const FrontEnd front_end = of_family(family);
    EXPECT_EQ(plan_sound(front_end, 16000)->rows, rows[0]) << family;
    EXPECT_EQ(plan_sound(front_end, 32001)->rows, rows[1]) << family;
    EXPECT_EQ(plan_sound(front_end, 480000)->rows, rows[2]) << family;
  }
}

TEST(SoundPlan, ASoundThatCannotBeHeardIsRefused) {
  const auto least = [](const char* family) {
    const FrontEnd front_end = of_family(family);
    int64_t samples = 1;
    while (!plan_sound(front_end, samples)) ++samples;
    return samples;
  };
  // Whisper hears silence around it. Of qwen2_audio two pairs of frames make a row. gemma3n's frame
  // and a sample more are 513, up to a multiple of 128; gemma4's are 161 beside the leading zeros.
  EXPECT_EQ(least("whisper"), 1);
  EXPECT_EQ(least("qwen2_audio"), 321);
  EXPECT_EQ(least("gemma3n"), 513);
  EXPECT_EQ(least("gemma4"), 161);
  const Result<SoundPlan> plan = plan_sound(of_family("gemma4"), 1);
  EXPECT_EQ(plan.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(plan.error().message,
            "the sound has 1 samples at 16000 Hz, too few for this model to hear anything");
}

TEST(SoundPlan, ALongerSoundThanTheEncoderTakesIsRefused) {
  for (const char* family : {"whisper", "qwen2_audio", "gemma3n", "gemma4"}) {
    const Result<SoundPlan> plan = plan_sound(of_family(family), 480001 + 1600);
    ASSERT_FALSE(plan) << family;
    EXPECT_EQ(plan.error().code, ErrorCode::kTooLarge);
    EXPECT_EQ(plan.error().message,
              "the sound lasts 30.1 s; this model hears at most 30.0 s at once");
  }
}

TEST(SoundPlaceholder, HasATokenForEachRow) {
  const FrontEnd qwen = of_family("qwen2_audio");
  EXPECT_EQ(placeholder_text(qwen, *plan_sound(qwen, 1000)), "<|AUDIO|><|AUDIO|>");
  const FrontEnd gemma4 = of_family("gemma4");
  EXPECT_EQ(placeholder_text(gemma4, *plan_sound(gemma4, 1000)),
            "<|audio><|audio|><|audio|><audio|>");
  const FrontEnd gemma3n =
      of("{}", R"({"model_type": "gemma3n", "audio_soft_tokens_per_image": 2})");
  EXPECT_EQ(placeholder_text(gemma3n, *plan_sound(gemma3n, 1000)),
            "\n\n<start_of_audio><audio_soft_token><audio_soft_token><end_of_audio>\n\n");
}

struct At {
  int64_t frame = 0;
  int mel = 0;
  float number = 0;
};

struct Expected {
  int64_t frames = 0;
  int64_t heard = 0;
  double mean = 0;
  std::vector<At> numbers{};
};

// What NumPy computes by the formulas of the reference, in float64 but for samples and window.
void expect_features(const FrontEnd& front_end, int64_t samples, const Expected& expected) {
  const SoundFeatures features = features_of(front_end, rattle(samples));
  EXPECT_EQ(features.frames, expected.frames);
  EXPECT_EQ(features.heard, expected.heard);
  ASSERT_EQ(features.numbers.size(), static_cast<size_t>(features.frames * front_end.mels));
  for (const At& at : expected.numbers)
    EXPECT_NEAR(features.numbers[static_cast<size_t>(at.frame * front_end.mels + at.mel)],
                at.number, 2e-6)
        << "frame " << at.frame << ", mel " << at.mel;
  double sum = 0;
  for (const float number : features.numbers) sum += number;
  EXPECT_NEAR(sum / static_cast<double>(features.numbers.size()), expected.mean, 2e-6);
}

TEST(SoundFeatures, OfWhisper) {
  const FrontEnd two_seconds =
      of(R"({"chunk_length": 2})", R"({"model_type": "whisper", "max_source_positions": 100})");
  expect_features(two_seconds, 20000,
                  {200,
                   125,
                   0.224288,
                   {{0, 0, 0.965447f},
                    {1, 40, 0.930334f},
                    {66, 7, 0.861411f},
                    {100, 79, 0.869384f},
                    {198, 26, -0.837704f},
                    {199, 79, -0.837704f}}});
}

TEST(SoundFeatures, OfWhisperAtAnotherRate) {
  const FrontEnd front_end = of(R"({"chunk_length": 1, "feature_size": 128, "n_fft": 480,
                                    "hop_length": 120, "sampling_rate": 24000})",
                                R"({"model_type": "qwen2_audio",
                                    "audio_config": {"max_source_positions": 100}})");
  expect_features(front_end, 9001,
                  {200,
                   76,
                   -0.166704,
                   {{0, 0, -0.753748f},
                    {1, 64, 0.627374f},
                    {66, 7, 0.902366f},
                    {100, 127, -0.753748f},
                    {198, 42, -0.753748f},
                    {199, 127, -0.753748f}}});
}

TEST(SoundFeatures, OfGemma3n) {
  expect_features(of_family("gemma3n"), 5000,
                  {29,
                   29,
                   1.734865,
                   {{0, 0, -1.948938f},
                    {1, 64, 1.621153f},
                    {9, 7, -1.579680f},
                    {14, 127, 4.234018f},
                    {27, 42, -1.034524f},
                    {28, 127, 4.284368f}}});
}

TEST(SoundFeatures, OfGemma4WithAFrameThatReachesBeyondTheSound) {
  expect_features(of_family("gemma4"), 4900,
                  {31,
                   30,
                   1.236230,
                   {{0, 0, -6.907755f},
                    {1, 64, 1.859990f},
                    {10, 7, 0.296593f},
                    {15, 127, 2.409216f},
                    {29, 42, 1.237463f},
                    {30, 127, 0.0f}}});
}

TEST(SoundFeatures, OfGemmaWithEverythingThatItsFileCanSay) {
  std::string mean, deviation;
  for (int i = 0; i < 64; ++i) {
    mean += (i > 0 ? "," : "") + std::to_string(i / 64.0);
    deviation += (i > 0 ? "," : "") + std::to_string(1 + i / 128.0);
  }
  const std::string file = R"({"frame_length_ms": 25, "fft_overdrive": true, "feature_size": 64,
      "min_frequency": 60, "max_frequency": 7000, "preemphasis": 0.9, "input_scale_factor": 2,
      "preemphasis_htk_flavor": false, "per_bin_mean": [)" +
                           mean + R"(],
      "per_bin_stddev": [)" +
                           deviation + "]}";
  expect_features(of(file, R"({"model_type": "gemma4"})"), 7001,
                  {43,
                   43,
                   1.827129,
                   {{0, 0, -0.196445f},
                    {1, 32, 2.456217f},
                    {14, 7, 1.186884f},
                    {21, 63, 3.032008f},
                    {41, 21, 1.592860f},
                    {42, 63, 2.662472f}}});
}

TEST(SoundFeatures, OfALongRecordingHaveOneLoudestNumber) {
  FrontEnd front_end =
      of(R"({"chunk_length": 1})", R"({"model_type": "whisper", "max_source_positions": 50})");
  const std::vector<float> quiet(16000, 0.0f);
  std::vector<float> both = quiet;
  const std::vector<float> loud = rattle(16000);
  both.insert(both.end(), loud.begin(), loud.end());
  EXPECT_FALSE(plan_sound(front_end, 32000));
  front_end.samples_max = 60 * 16000;
  const SoundFeatures features = features_of(front_end, both);
  EXPECT_EQ(features.frames, 200);
  EXPECT_EQ(features_of(front_end, quiet).numbers[0], -1.5f);
  const float loudest = *std::ranges::max_element(features.numbers);
  EXPECT_FLOAT_EQ(features.numbers[0], loudest - 2);  // 8 below, divided by 4.
}

TEST(SoundFeatures, OfSilenceAreTheLeastNumbers) {
  const std::vector<float> silence(16000);
  for (const float number : features_of(of_family("whisper"), silence).numbers)
    ASSERT_EQ(number, -1.5f);
  for (const float number : features_of(of_family("gemma3n"), silence).numbers)
    ASSERT_FLOAT_EQ(number, static_cast<float>(std::log(1e-5)));
  for (const float number : features_of(of_family("gemma4"), silence).numbers)
    ASSERT_FLOAT_EQ(number, static_cast<float>(std::log(1e-3)));
}

TEST(SoundFeatures, OfTheLoudestSamplesAreNumbers) {
  std::vector<float> samples = rattle(4000);
  for (float& sample : samples) sample = sample > 0 ? 2147483648.0f : -2147483648.0f;
  for (const char* family : {"whisper", "qwen2_audio", "gemma3n", "gemma4"})
    for (const float number : features_of(of_family(family), samples).numbers)
      ASSERT_TRUE(std::isfinite(number)) << family;
}

}  // namespace
}  // namespace weir::media
