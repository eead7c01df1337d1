// Videos as frames: sizes as the references' two rules give them, times as they write them, and
// numbers in the order in which their patches lie.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "card/config_reader.h"
#include "media/processor/pixel_values.h"
#include "media/processor/video_plan.h"

namespace weir::media {
namespace {

Processor of(const std::string& model_type, std::string_view video = "{}",
             std::string_view vision = "{}") {
  const JsonDoc preprocessor = *card::parse_config(
      R"({"image_processor": {}, "video_processor": )" + std::string(video) + "}");
  const JsonDoc config = *card::parse_config(R"({"model_type": ")" + model_type +
                                             R"(", "vision_config": )" + std::string(vision) + "}");
  Result<Processor> processor = read_processor(preprocessor.root(), config.root());
  EXPECT_TRUE(processor) << processor.error().message;
  return *processor;
}

Size size_of(const Processor& processor, Size frame, int64_t frames) {
  return plan_video(processor, frame, even_frames(frames, 2))->frame.canvas;
}

constexpr std::string_view kQwen3 = R"({"size": {"shortest_edge": 4096, "longest_edge": 25165824}})";

TEST(Video, EachFrameHasItsBudget) {
  const Processor qwen = of("qwen2_5_vl");
  for (const int64_t frames : {1, 4, 64}) {
    EXPECT_EQ(size_of(qwen, {1280, 720}, frames), (Size{1008, 560}));
    EXPECT_EQ(size_of(qwen, {100, 60}, frames), (Size{420, 252}));
    EXPECT_EQ(size_of(qwen, {640, 480}, frames), (Size{644, 476}));
  }
}

// Halves of frames are rounded to even numbers of pairs, as Python does it.
TEST(Video, OrAllFramesHaveOneTogether) {
  const Processor qwen = of("qwen3_vl", kQwen3), plain = of("qwen3_5");
  EXPECT_EQ(size_of(qwen, {1280, 720}, 2), (Size{1280, 704}));
  EXPECT_EQ(size_of(qwen, {1280, 720}, 64), (Size{832, 448}));
  EXPECT_EQ(size_of(qwen, {100, 60}, 4), (Size{96, 64}));
  EXPECT_EQ(size_of(qwen, {20, 300}, 7), (Size{32, 480}));
  EXPECT_EQ(size_of(plain, {1280, 720}, 2), (Size{832, 448}));
  EXPECT_EQ(size_of(plain, {1280, 720}, 3), (Size{672, 384}));
  EXPECT_EQ(size_of(plain, {1280, 720}, 5), (Size{512, 288}));
  EXPECT_EQ(size_of(plain, {20, 300}, 7), (Size{64, 544}));
  EXPECT_FALSE(plan_video(plain, {1, 9000}, even_frames(2, 2)));
}

TEST(Video, MomentsHaveTheirTimesInTheText) {
  const Processor qwen = of("qwen3_vl", kQwen3);
  const std::string row = "<|video_pad|>", end = "<|vision_end|>";
  const auto moment = [&](const char* time) {
    return std::string("<") + time + " seconds><|vision_start|>" + row + row + end;
  };
  // Of 5 frames the last one is its own next.
  EXPECT_EQ(video_text(qwen, *plan_video(qwen, {64, 32}, even_frames(5, 2))),
            moment("0.2") + moment("1.2") + moment("2.0"));
  EXPECT_EQ(video_text(qwen, *plan_video(qwen, {64, 32}, even_frames(4, 24))), moment("0.0") + moment("0.1"));
  EXPECT_EQ(moment_step(qwen, *plan_video(qwen, {64, 32}, even_frames(4, 24)), 1), 0);
}

TEST(Video, OrInTheirPositions) {
  const Processor two = of("qwen2_vl"), half = of("qwen2_5_vl", "{}", R"({"tokens_per_second": 2})");
  const auto steps = [](const Processor& processor, double rate) {
    const VideoPlan plan = *plan_video(processor, {364, 280}, even_frames(7, rate));
    std::vector<int64_t> all;
    for (int64_t i = 0; i < plan.moments; ++i) all.push_back(moment_step(processor, plan, i));
    return all;
  };
  EXPECT_EQ(steps(two, 0.5), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(steps(half, 2), (std::vector<int64_t>{0, 2, 4, 6}));
  EXPECT_EQ(steps(half, 3), (std::vector<int64_t>{0, 1, 2, 4}));
  EXPECT_EQ(steps(half, 24), (std::vector<int64_t>{0, 0, 0, 0}));
  const VideoPlan plan = *plan_video(two, {364, 280}, even_frames(3, 2));
  std::string rows;
  for (int i = 0; i < 2 * 130; ++i) rows += "<|video_pad|>";
  EXPECT_EQ(video_text(two, plan), rows);
}

// A moment's number at [block row, block column, row in it, column in it, colour, frame, y, x].
TEST(Video, NumbersLieByBlocksAndFrames) {
  Processor processor = of("qwen2_vl");
  processor.patch = 2;
  processor.unit = 4;
  std::mt19937 random(7);
  Image first(12, 8), second(12, 8);
  for (uint8_t& byte : first.rgb) byte = static_cast<uint8_t>(random());
  for (uint8_t& byte : second.rgb) byte = static_cast<uint8_t>(random());
  const ImagePlan plan{.resizes = {{12, 8}}, .canvas = {12, 8}};
  const Image* const frames[] = {&first, &second};
  const PixelValues values = moment_values(processor, plan, frames);
  ASSERT_EQ(values.views, (std::vector<Size>{{12, 8}}));
  ASSERT_EQ(values.numbers.size(), 2u * 3 * 12 * 8);
  size_t next = 0;
  for (int block_y = 0; block_y < 2; ++block_y)
    for (int block_x = 0; block_x < 3; ++block_x)
      for (int patch = 0; patch < 4; ++patch)
        for (size_t colour = 0; colour < 3; ++colour)
          for (const Image* frame : frames)
            for (int pixel = 0; pixel < 4; ++pixel) {
              const int y = block_y * 4 + patch / 2 * 2 + pixel / 2;
              const int x = block_x * 4 + patch % 2 * 2 + pixel % 2;
              const float byte = frame->row(y)[3 * static_cast<size_t>(x) + colour];
              EXPECT_NEAR(values.numbers[next++],
                          (byte / 255 - processor.mean[colour]) / processor.deviation[colour], 1e-6);
            }
  // A picture is its own next frame.
  const Image* const same[] = {&first, &first};
  EXPECT_EQ(moment_values(processor, plan, same).numbers,
            pixel_values(processor, plan, first).numbers);
}

// As transformers and qwen-vl-utils count them.
TEST(Video, OfAFileAsManyFramesAreTakenAsTheReferencesTake) {
  const auto taken = [](const Processor& processor, int64_t frames, double rate,
                        std::optional<double> wanted = {}) {
    const SampledFrames sampled = sample_frames(processor, frames, rate, wanted);
    EXPECT_EQ(sampled.times.count(), std::ssize(sampled.indices));
    EXPECT_DOUBLE_EQ(sampled.times.rate,
                     static_cast<double>(sampled.indices.size()) / static_cast<double>(frames) * rate);
    for (size_t i = 0; i < sampled.indices.size(); ++i)
      EXPECT_EQ(sampled.times.seconds[i], static_cast<double>(sampled.indices[i]) / rate);
    return sampled.indices;
  };
  using Indices = std::vector<int64_t>;
  const Processor two = of("qwen2_vl"), three = of("qwen3_vl", kQwen3);
  // Whole moments, the first frame of each of as many parts.
  EXPECT_EQ(taken(two, 100, 25), (Indices{0, 12, 25, 37, 50, 62, 75, 87}));
  EXPECT_EQ(taken(two, 109, 25), (Indices{0, 13, 27, 40, 54, 68, 81, 95}));
  EXPECT_EQ(taken(two, 7, 1), (Indices{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(taken(two, 3, 30), (Indices{0, 1}));
  EXPECT_EQ(taken(two, 1, 30), (Indices{0}));
  EXPECT_EQ(taken(two, 30, 30), (Indices{0, 7, 15, 22}));
  EXPECT_EQ(taken(two, 100, 25, 1.0), (Indices{0, 25, 50, 75}));
  EXPECT_EQ(taken(two, 100'000, 25).size(), 768u);
  // From the first to the last, one at least.
  EXPECT_EQ(taken(three, 100, 25), (Indices{0, 14, 28, 42, 57, 71, 85, 99}));
  EXPECT_EQ(taken(three, 109, 25), (Indices{0, 15, 31, 46, 62, 77, 93, 108}));
  EXPECT_EQ(taken(three, 7, 2), (Indices{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(taken(three, 8, 4), (Indices{0, 2, 5, 7}));
  EXPECT_EQ(taken(three, 1, 4), (Indices{0}));
  EXPECT_EQ(taken(three, 100'000, 25).size(), 768u);
  EXPECT_EQ(taken(three, 100'000, 25).back(), 99'999);
  const Processor own = of("qwen3_vl", R"({"fps": 1, "min_frames": 2, "max_frames": 3})");
  EXPECT_EQ(taken(own, 60, 30), (Indices{0, 59}));
  EXPECT_EQ(taken(own, 300, 30), (Indices{0, 150, 299}));
}

// The times of frames as they stand in the file, not as if all were as far apart.
TEST(Video, TimesOfSampledFramesAreTheFiles) {
  const Processor qwen = of("qwen3_vl", kQwen3);
  const SampledFrames sampled = sample_frames(qwen, 8, 4, std::nullopt);
  const VideoPlan plan = *plan_video(qwen, {64, 32}, sampled.times);
  const std::string text = video_text(qwen, plan);
  EXPECT_NE(text.find("<0.2 seconds>"), std::string::npos) << text;
  EXPECT_NE(text.find("<1.5 seconds>"), std::string::npos) << text;
}

TEST(Video, BoundsAreThoseOfTheVideosFile) {
  const Processor qwen = of("qwen2_vl", R"({"min_pixels": 784, "max_pixels": 6272})");
  EXPECT_EQ(size_of(qwen, {1280, 720}, 8), (Size{84, 56}));
  EXPECT_FALSE(of("gemma3").video.taken);
}

}  // namespace
}  // namespace weir::media
