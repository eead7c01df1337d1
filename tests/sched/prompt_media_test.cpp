#include "sched/prompt_media.h"

#include <gtest/gtest.h>

#include <vector>

#include "sched/copy_drafts.h"
#include "sched/fake_encoder.h"

namespace weir::sched {
namespace {

using model::BothWays;
using model::RopePosition;

// Tokens: 4 of text, a picture of 2 x 3 with a mark, 2 of text, one of 3 x 2 without, 1 of text.
PicturePrompt two_pictures() {
  PicturePrompt prompt;
  prompt.add_text(std::vector<int32_t>{5, 6, 7, 8});
  prompt.add(made_up_picture(1, 2, 3, true));
  prompt.add_text(std::vector<int32_t>{5, 6});
  prompt.add(made_up_picture(2, 3, 2, false));
  prompt.add_text(std::vector<int32_t>{9});
  return prompt;
}

TEST(PromptMedia, AHashIsOfWhatATowerReads) {
  PictureInput input{.plan = {.canvas = {4, 2}},
                     .pixels = {.numbers = {1, 2, 3}, .views = {{4, 2}}}};
  const MediaHash hash = hash_of(input);
  EXPECT_EQ(hash_of(input), hash);
  PictureInput other = input;
  other.pixels.numbers[1] = 2.5f;
  EXPECT_NE(hash_of(other), hash);
  other = input;
  other.plan.canvas = {2, 4};
  EXPECT_NE(hash_of(other), hash);
  other = input;
  other.pixels.views = {{2, 4}};
  EXPECT_NE(hash_of(other), hash);
}

TEST(PromptMedia, BlocksDifferByPictureAndByPlace) {
  const PromptMedia media = two_pictures().media;
  EXPECT_EQ(hash_within(media, 0, 4), MediaHash{});
  EXPECT_EQ(hash_within(media, 11, 13), MediaHash{});
  EXPECT_EQ(hash_within(media, 19, 30), MediaHash{});
  const MediaHash first = hash_within(media, 4, 8);
  EXPECT_NE(first, MediaHash{});
  EXPECT_NE(hash_within(media, 5, 9), first);   // The picture begins elsewhere in it.
  EXPECT_NE(hash_within(media, 0, 32), first);  // Both are in it.
  PromptMedia other = media;
  other.items[0].hash[1] ^= 1;
  EXPECT_NE(hash_within(other, 4, 8), first);
  EXPECT_TRUE(same_before(&media, &media, 32));
  EXPECT_TRUE(same_before(&media, nullptr, 4));
  EXPECT_FALSE(same_before(&media, nullptr, 5));
  EXPECT_FALSE(same_before(&media, &other, 32));
  EXPECT_TRUE(same_before(&media, &other, 4));
  other = media;
  other.items.pop_back();
  EXPECT_TRUE(same_before(&media, &other, 13));
  EXPECT_FALSE(same_before(&other, &media, 14));
}

TEST(PromptMedia, SpansAreRunsOfFeaturesOrTheWholePrompt) {
  const PromptMedia media = two_pictures().media;
  const auto span = [&](BothWays both_ways, int32_t from) {
    const model::Mask mask = span_after(media, both_ways, 20, from);
    return std::pair(mask.begin, mask.end);
  };
  EXPECT_EQ(span(BothWays::kNone, 0), std::pair(0, 0));
  EXPECT_EQ(span(BothWays::kRuns, 0), std::pair(4, 7));
  EXPECT_EQ(span(BothWays::kRuns, 6), std::pair(4, 7));
  EXPECT_EQ(span(BothWays::kRuns, 7), std::pair(8, 11));
  EXPECT_EQ(span(BothWays::kRuns, 11), std::pair(13, 19));
  EXPECT_EQ(span(BothWays::kRuns, 19), std::pair(0, 0));
  EXPECT_EQ(span(BothWays::kPrompt, 3), std::pair(0, 20));
  EXPECT_EQ(span(BothWays::kPrompt, 20), std::pair(0, 0));
}

// Positions as the Qwen-VL papers count them.
TEST(PromptMedia, TextGoesOnAfterTheLargerSideOfAPicture) {
  PicturePrompt prompt;
  prompt.add_text(std::vector<int32_t>{5, 6});
  prompt.add(made_up_picture(1, 2, 3, false));
  prompt.add_text(std::vector<int32_t>{7});
  prompt.add(made_up_picture(2, 3, 1, false));
  prompt.add_text(std::vector<int32_t>{8});
  const std::vector<RopePosition> all = {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {2, 2, 3}, {2, 2, 4},
                                         {2, 3, 2}, {2, 3, 3}, {2, 3, 4}, {5, 5, 5}, {6, 6, 6},
                                         {6, 7, 6}, {6, 8, 6}, {9, 9, 9}};
  ASSERT_EQ(all.size(), prompt.tokens.size());
  for (size_t first = 0; first < all.size(); ++first)
    for (size_t count = 1; first + count <= all.size(); ++count) {
      std::vector<RopePosition> found(count);
      rope_positions(prompt.media, static_cast<int32_t>(first), found);
      EXPECT_TRUE(std::ranges::equal(found, std::span(all).subspan(first, count))) << first;
    }
  EXPECT_EQ(shift_of(prompt.media), 9 + 1 - 13);
}

TEST(PromptMedia, NoRowOfAPictureIsCopied) {
  PicturePrompt prompt;
  prompt.add_text(std::vector<int32_t>{5, 6, 7, 8});
  prompt.add(made_up_picture(1, 1, 5, false));
  prompt.add_text(std::vector<int32_t>{9, 4, 5, 6, 7});
  auto request = prompt.request({}, 4);
  request->text = std::make_unique<TextIndex>(32);
  append_prompt(request->prompt, request->media.get(), *request->text);
  EXPECT_EQ(request->text->size(), 14);
  CopyDrafts drafts;
  std::array<Draft, DraftSource::kDraftsMax> room;
  std::array<DraftOrder, 1> orders;
  orders[0].request = request.get();
  orders[0].drafts = room;
  drafts.draft(orders);
  EXPECT_EQ(orders[0].count, 1);  // What follows 5, 6, 7 is 8, and then the picture.
  EXPECT_EQ(room[0].token, 8);
}

std::string wrong_with(const PromptMedia& media, const MediaLimits& limits) {
  const Result<void> checked = check_media(media, 20, limits);
  return checked ? "" : checked.error().message;
}

TEST(PromptMedia, WhatIsWrongIsSaid) {
  const MediaLimits limits = {
      .pictures = true, .row_bytes = 4, .features_bytes_max = 1000, .span_tokens_max = 10};
  const PromptMedia media = two_pictures().media;
  EXPECT_EQ(wrong_with(media, limits), "");
  EXPECT_EQ(wrong_with(media, {}), "This model takes no pictures");
  MediaLimits three = limits;
  three.three_positions = true;
  EXPECT_EQ(wrong_with(media, three), "Expected a picture of one view, with its grid");
  PromptMedia changed = media;
  changed.items[1].input = {};
  EXPECT_EQ(wrong_with(changed, limits), "A picture or sound of the prompt has no numbers");
  changed = media;
  changed.items[1].runs.clear();
  EXPECT_EQ(wrong_with(changed, limits), "Expected rows of features of a picture, found none");
  changed = media;
  std::swap(changed.items[0], changed.items[1]);
  EXPECT_EQ(wrong_with(changed, limits),
            "Expected a picture's tokens between 19 and 20, found 4 to 11");
  changed = media;
  changed.items[0].runs[1].first = 7;
  changed.items[0].runs[1].count = 4;
  EXPECT_EQ(wrong_with(changed, limits),
            "Expected a picture's rows of features in order, with marks between their runs");
  MediaLimits small = limits;
  small.features_bytes_max = 44;
  EXPECT_EQ(
      wrong_with(media, small),
      "Expected pictures and sounds of at most 11 tokens together, which is what --image-cache "
      "holds; found 12");
  small = limits;
  small.both_ways = BothWays::kPrompt;
  EXPECT_EQ(
      wrong_with(media, small),
      "Expected at most 10 tokens of a prompt with a picture, all of which see each other and "
      "so are computed in one step; found 20");
}

// Tokens: 4 of text, a sound of 5, 2 of text, a picture of 3 x 2, 1 of text.
PicturePrompt sound_and_picture() {
  PicturePrompt prompt;
  prompt.add_text(std::vector<int32_t>{5, 6, 7, 8});
  prompt.add(made_up_sound(1, 5));
  prompt.add_text(std::vector<int32_t>{5, 6});
  prompt.add(made_up_picture(2, 3, 2, false));
  prompt.add_text(std::vector<int32_t>{9});
  return prompt;
}

TEST(PromptMedia, ASoundsHashIsOfWhatAnEncoderReads) {
  const SoundInput input{.frames = 3, .heard = 2, .numbers = {1, 2, 3}};
  const MediaHash hash = hash_of(input);
  EXPECT_EQ(hash_of(input), hash);
  SoundInput other = input;
  other.numbers[2] = 3.5f;
  EXPECT_NE(hash_of(other), hash);
  other = input;
  other.heard = 3;
  EXPECT_NE(hash_of(other), hash);
  EXPECT_NE(hash_of(PictureInput{.pixels = {.numbers = {1, 2, 3}}}), hash);
}

TEST(PromptMedia, ASoundIsReadAsTextIs) {
  const PromptMedia media = sound_and_picture().media;
  const model::Mask span = span_after(media, BothWays::kRuns, 18, 0);
  EXPECT_EQ(std::pair(span.begin, span.end), std::pair(11, 17));
  EXPECT_EQ(shift_of(media), 3 - 6);
  std::vector<RopePosition> positions(18);
  rope_positions(media, 0, positions);
  for (int32_t i = 0; i < 11; ++i)
    EXPECT_EQ(positions[static_cast<size_t>(i)], (RopePosition{i, i, i})) << i;
  EXPECT_EQ(positions[14], (RopePosition{11, 12, 12}));
  EXPECT_EQ(positions[17], (RopePosition{14, 14, 14}));
}

TEST(PromptMedia, WhatAModelDoesNotTakeIsSaid) {
  const PromptMedia media = sound_and_picture().media;
  MediaLimits limits = {
      .pictures = true, .sounds = true, .row_bytes = 4, .features_bytes_max = 1000};
  EXPECT_EQ(wrong_with(media, limits), "");
  limits.sounds = false;
  EXPECT_EQ(wrong_with(media, limits), "This model takes no sounds");
  limits = {.sounds = true, .row_bytes = 4, .features_bytes_max = 1000};
  EXPECT_EQ(wrong_with(media, limits), "This model takes no pictures");
}

}  // namespace
}  // namespace weir::sched
