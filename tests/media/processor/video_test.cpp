// Videos as frames: sizes as the references' two rules give them, times as they write them, and
// numbers in the order in which their patches lie.
#include <gtest/gtest.h>

#include <random>
#include <string>

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
  return plan_video(processor, frame, frames, 2)->frame.canvas;
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
  EXPECT_FALSE(plan_video(plain, {1, 9000}, 2, 2));
}

TEST(Video, MomentsHaveTheirTimesInTheText) {
  const Processor qwen = of("qwen3_vl", kQwen3);
  const std::string row = "<|video_pad|>", end = "<|vision_end|>";
  const auto moment = [&](const char* time) {
    return std::string("<") + time + " seconds><|vision_start|>" + row + row + end;
  };
  // Of 5 frames the last one is its own next.
  EXPECT_EQ(video_text(qwen, *plan_video(qwen, {64, 32}, 5, 2)),
            moment("0.2") + moment("1.2") + moment("2.0"));
  EXPECT_EQ(video_text(qwen, *plan_video(qwen, {64, 32}, 4, 24)), moment("0.0") + moment("0.1"));
  EXPECT_EQ(moment_step(qwen, *plan_video(qwen, {64, 32}, 4, 24), 1), 0);
}

TEST(Video, OrInTheirPositions) {
  const Processor two = of("qwen2_vl"), half = of("qwen2_5_vl", "{}", R"({"tokens_per_second": 2})");
  const auto steps = [](const Processor& processor, double rate) {
    const VideoPlan plan = *plan_video(processor, {364, 280}, 7, rate);
    std::vector<int64_t> all;
    for (int64_t i = 0; i < plan.moments; ++i) all.push_back(moment_step(processor, plan, i));
    return all;
  };
  EXPECT_EQ(steps(two, 0.5), (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(steps(half, 2), (std::vector<int64_t>{0, 2, 4, 6}));
  EXPECT_EQ(steps(half, 3), (std::vector<int64_t>{0, 1, 2, 4}));
  EXPECT_EQ(steps(half, 24), (std::vector<int64_t>{0, 0, 0, 0}));
  const VideoPlan plan = *plan_video(two, {364, 280}, 3, 2);
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

TEST(Video, BoundsAreThoseOfTheVideosFile) {
  const Processor qwen = of("qwen2_vl", R"({"min_pixels": 784, "max_pixels": 6272})");
  EXPECT_EQ(size_of(qwen, {1280, 720}, 8), (Size{84, 56}));
  EXPECT_FALSE(of("gemma3").video.taken);
}

}  // namespace
}  // namespace weir::media
