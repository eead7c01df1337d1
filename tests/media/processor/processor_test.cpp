#include "media/processor/processor.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/concat.h"
#include "card/config_reader.h"
#include "media/processor/image_plan.h"
#include "media/processor/pixel_values.h"
#include "media/processor/placeholder.h"

namespace weir::media {
namespace {

Result<Processor> read(std::string_view preprocessor, std::string_view config) {
  const JsonDoc first = *card::parse_config(preprocessor), second = *card::parse_config(config);
  return read_processor(first.root(), second.root());
}

Processor of(std::string_view preprocessor, std::string_view config) {
  Result<Processor> processor = read(preprocessor, config);
  EXPECT_TRUE(processor) << processor.error().message;
  return *processor;
}

void expect_refused(std::string_view preprocessor, std::string_view config, std::string_view part) {
  const Result<Processor> processor = read(preprocessor, config);
  ASSERT_FALSE(processor) << part;
  EXPECT_NE(processor.error().message.find(part), std::string::npos) << processor.error().message;
}

std::string text_for(const Processor& processor, Size image) {
  return placeholder_text(processor, *plan_image(processor, image));
}

TEST(Processor, AMissingKeyIsWhatTheReferenceTakes) {
  const Processor qwen = of("{}", R"({"model_type": "qwen2_vl"})");
  EXPECT_EQ(qwen.unit, 28);
  EXPECT_EQ(qwen.pixels_min, 3136);
  EXPECT_EQ(qwen.pixels_max, 1003520);
  EXPECT_EQ(qwen.filter, Filter::kBicubic);
  const Processor newer = of(R"({"size": {"shortest_edge": 65536, "longest_edge": 16777216}})",
                             R"({"model_type": "qwen3_vl"})");
  EXPECT_EQ(newer.unit, 32);
  EXPECT_EQ(newer.pixels_max, 16777216);
}

// A side is at least a unit, however few pixels the budget has.
TEST(Processor, AnElongatedPictureBeyondTheBudgetIsRefused) {
  const Processor small =
      of(R"({"min_pixels": 3136, "max_pixels": 7840})", R"({"model_type": "qwen2_vl"})");
  EXPECT_EQ(plan_image(small, {90, 30})->canvas, (Size{112, 56}));
  const Result<ImagePlan> plan = plan_image(small, {1800, 10});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kInvalid);
  EXPECT_NE(plan.error().message.find("1800 x 10"), std::string::npos) << plan.error().message;
  EXPECT_NE(plan.error().message.find("at most 7840 pixels"), std::string::npos);
}

TEST(Processor, IsReadFromWithinProcessorConfigToo) {
  const Processor processor =
      of(R"({"image_processor": {"size": {"height": 448, "width": 448}}})",
         R"({"model_type": "paligemma", "vision_config": {"patch_size": 14}})");
  EXPECT_EQ(processor.width, 448);
  EXPECT_EQ(token_count(processor, *plan_image(processor, {10, 10})), 1024);
}

TEST(Processor, WhatIsNotComputedIsRefusedByName) {
  expect_refused("{}", R"({"model_type": "muse_glimmer"})",
                 "images of the family \"muse_glimmer\" are not computed");
  expect_refused(R"({"do_resize": false})", R"({"model_type": "gemma3"})", "'do_resize'");
  expect_refused(R"({"do_pan_and_scan": true})", R"({"model_type": "gemma3"})",
                 "'do_pan_and_scan'");
  expect_refused(R"({"resample": 9})", R"({"model_type": "qwen2_vl"})",
                 "'resample': expected a filter's number from 0 to 4, found 9");
  expect_refused(R"({"image_std": [0, 1, 1]})", R"({"model_type": "qwen2_vl"})", "'image_std'");
  expect_refused(R"({"min_pixels": 10000, "max_pixels": 9000})", R"({"model_type": "qwen2_vl"})",
                 "found 9000 and 10000");
  expect_refused(R"({"size": {"height": 10, "width": 10}})", R"({"model_type": "paligemma"})",
                 "expected sides of at least one token (14 pixels), found 10");
  expect_refused("{}", R"({"model_type": "llava", "vision_feature_select_strategy": "full"})",
                 "'vision_feature_select_strategy'");
}

// Of 1,024 x 1,024 pixels, as docs/images.md has them, and of sizes that give several tiles.
TEST(Processor, CountsTokens) {
  const auto count = [](std::string_view type, Size image) {
    const std::string config = R"({"model_type": ")" + std::string(type) + R"("})";
    const Processor processor = of("{}", config);
    return token_count(processor, *plan_image(processor, image));
  };
  const std::pair<const char*, int64_t> kSquare[] = {
      {"qwen2_vl", 1225},    {"qwen3_vl", 1024}, {"glm4v", 1369},   {"gemma3", 256},
      {"gemma4", 256},       {"paligemma", 256}, {"idefics3", 2873}, {"llava", 576},
      {"mistral3", 1024},    {"lfm2_vl", 1280},  {"internvl", 2560}, {"llama4", 2448},
      {"llava_qwen2", 256},
  };
  for (const auto& [type, tokens] : kSquare) EXPECT_EQ(count(type, {1024, 1024}), tokens) << type;
  EXPECT_EQ(count("internvl", {448 * 3, 448 * 2}), 7 * 256);
  EXPECT_EQ(count("llama4", {336 * 2, 336}), 3 * 144);
  EXPECT_EQ(count("lfm2_vl", {512, 512}), 256) << "not large: one view";
  EXPECT_EQ(count("lfm2_vl", {2048, 1024}), 8 * 256 + 242);
}

// The older layout has its sizes in config.json, and CLIP's file beside it, or none.
TEST(Processor, InternVlChatIsReadFromConfig) {
  const std::string config =
      R"({"model_type": "internvl_chat", "force_image_size": 448, "dynamic_image_size": true,
          "max_dynamic_patch": 12, "use_thumbnail": true, "downsample_ratio": 0.5,
          "vision_config": {"image_size": 448, "patch_size": 14}})";
  const JsonDoc doc = *card::parse_config(config);
  const Result<Processor> alone = read_processor(std::nullopt, doc.root());
  ASSERT_TRUE(alone) << alone.error().message;
  const Processor beside = of(
      R"({"crop_size": 336, "do_center_crop": true, "do_normalize": true, "do_resize": true,
          "feature_extractor_type": "CLIPFeatureExtractor", "image_mean": [0.485, 0.456, 0.406],
          "image_std": [0.5, 0.25, 0.225], "resample": 3, "size": 336})",
      config);
  const Processor newer = of("{}", R"({"model_type": "internvl"})");
  for (const Processor& found : {*alone, beside})
    for (const Size image : {Size{1024, 1024}, Size{448 * 3, 448 * 2}, Size{100, 2000}, Size{9, 9}})
      EXPECT_EQ(text_for(found, image), text_for(newer, image));
  EXPECT_EQ(alone->mean, newer.mean);
  EXPECT_EQ(alone->deviation, newer.deviation);
  EXPECT_EQ(beside.deviation[1], 0.25f);
  const auto count = [](std::string_view keys) {
    const Processor found = of("{}", concat({R"({"model_type": "internvl_chat", )", keys, "}"}));
    return token_count(found, *plan_image(found, {1024, 1024}));
  };
  EXPECT_EQ(count(R"("force_image_size": 448)"), 256) << "one view";
  EXPECT_EQ(count(R"("force_image_size": 448, "dynamic_image_size": true)"), 4 * 256) << "no whole";
  EXPECT_EQ(count(R"("vision_config": {"image_size": [56, 56]})"), 4);
  expect_refused("{}", R"({"model_type": "internvl_chat", "pad2square": true})", "'pad2square'");
  const JsonDoc other = *card::parse_config(R"({"model_type": "internvl"})");
  const Result<Processor> refused = read_processor(std::nullopt, other.root());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(refused.error().message, "preprocessor_config.json is not among its files");
}

TEST(Processor, APictureCannotBecomeTooLarge) {
  const Processor clip = of("{}", R"({"model_type": "llava"})");
  const Result<ImagePlan> plan = plan_image(clip, {60000, 1});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kTooLarge);
  EXPECT_NE(plan.error().message.find("60000 x 1 pixels would become one of 20160000 x 336"),
            std::string::npos)
      << plan.error().message;
}

TEST(Placeholder, IsOnlyTheTokensOfMostFamilies) {
  const Processor qwen = of(R"({"min_pixels": 1568})", R"({"model_type": "qwen2_vl"})");
  EXPECT_EQ(text_for(qwen, {56, 28}), "<|image_pad|><|image_pad|>");
}

TEST(Placeholder, PixtralMarksRows) {
  const Processor processor =
      of(R"({"patch_size": 14, "size": {"longest_edge": 84}})",
         R"({"model_type": "mistral3", "spatial_merge_size": 2})");
  EXPECT_EQ(text_for(processor, {50, 50}), "[IMG][IMG][IMG_BREAK][IMG][IMG][IMG_END]");
}

TEST(Placeholder, OlderTemplatesHaveAMarkOfTheirOwn) {
  const Placeholder marks = of("{}", R"({"model_type": "internvl"})").placeholder;
  EXPECT_EQ(mark_in(marks, "{{ '<IMG_CONTEXT>\n' }}"), "<IMG_CONTEXT>");
  EXPECT_EQ(mark_in(marks, "{{ '<image>\n' }}"), "<image>");
  EXPECT_EQ(mark_in(marks, "{{ '<image><IMG_CONTEXT>' }}"), "<IMG_CONTEXT>");
  EXPECT_EQ(mark_in(marks, "{{ message.content }}"), "<IMG_CONTEXT>");
  EXPECT_EQ(mark_in(of("{}", R"({"model_type": "gemma3"})").placeholder, "<image>"),
            "<start_of_image>");
}

TEST(Placeholder, IdeficsNamesTiles) {
  const Processor processor =
      of(R"({"size": {"longest_edge": 56}, "max_image_size": {"longest_edge": 28}})",
         R"({"model_type": "smolvlm", "scale_factor": 2, "vision_config": {"patch_size": 14}})");
  EXPECT_EQ(text_for(processor, {56, 28}),
            "<fake_token_around_image><row_1_col_1><image>"
            "<fake_token_around_image><row_1_col_2><image>\n"
            "\n<fake_token_around_image><global-img><image><fake_token_around_image>");
}

TEST(Placeholder, Lfm2NamesTiles) {
  const Processor processor =
      of(R"({"tile_size": 32, "min_image_tokens": 1, "max_image_tokens": 1, "max_tiles": 4})",
         R"({"model_type": "lfm2_vl"})");
  EXPECT_EQ(text_for(processor, {32, 32}), "<|image_start|><image><|image_end|>");
  EXPECT_EQ(text_for(processor, {200, 100}),
            "<|image_start|><|img_row_1_col_1|><image><|img_row_1_col_2|><image>"
            "<|img_thumbnail|><image><|image_end|>");
}

TEST(Placeholder, Llama4SeparatesTiles) {
  const Processor processor =
      of(R"({"size": {"height": 28, "width": 28}})", R"({"model_type": "llama4"})");
  EXPECT_EQ(text_for(processor, {28, 28}), "<|image_start|><|image|><|patch|><|image_end|>");
  EXPECT_EQ(text_for(processor, {56, 28}),
            "<|image_start|><|patch|><|tile_x_separator|><|patch|><|tile_y_separator|>"
            "<|image|><|patch|><|image_end|>");
}

TEST(PixelValues, BlocksHoldEachPixelOnceAFrame) {
  Processor processor = of(R"({"patch_size": 2, "min_pixels": 16, "do_rescale": false,
                              "do_normalize": false})",
                           R"({"model_type": "qwen2_vl"})");
  Image image(8, 4);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 8; ++x) image.row(y)[3 * x] = static_cast<uint8_t>(10 * y + x);
  const PixelValues values = pixel_values(processor, *plan_image(processor, {8, 4}), image);
  ASSERT_EQ(values.numbers.size(), size_t{8 * 3 * 2 * 4});
  // Patch 1 is the one to the right in the first block of 2 x 2, patch 2 the one below.
  const auto red = [&](size_t patch, size_t i) { return values.numbers[patch * 24 + i]; };
  EXPECT_EQ(red(1, 0), 2);
  EXPECT_EQ(red(2, 0), 20);
  EXPECT_EQ(red(4, 0), 4);
  EXPECT_EQ(red(1, 3), 13);
  EXPECT_EQ(red(1, 4), 2) << "the next frame is the same picture";
}

}  // namespace
}  // namespace weir::media
