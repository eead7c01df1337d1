#include "kv/layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::kv {
namespace {

using kernels::FloatType;

MemoryLayout layout_of(const std::vector<int32_t>& windows) {
  std::vector<MemoryNeed> needs;
  for (const int32_t window : windows) needs.push_back(PagedNeed{1, 32, 32, window});
  auto layout = MemoryLayout::make(std::move(needs), FloatType::kF16);
  EXPECT_TRUE(layout);
  return std::move(*layout);
}

TEST(MemoryLayout, HasAGroupForEachWindowAndASpineForAllElse) {
  const MemoryLayout layout = layout_of({512, 0, 512, 4096, 0, 512});
  ASSERT_EQ(layout.groups().size(), 3u);
  const int64_t page = (32 + 32) * 32 * 2;
  EXPECT_EQ(layout.groups()[0].page_bytes, 2 * page);
  EXPECT_EQ(layout.groups()[1].window, 4096);
  EXPECT_EQ(layout.groups()[1].page_bytes, page);
  EXPECT_EQ(layout.groups()[2].window, 512);
  EXPECT_EQ(layout.groups()[2].page_bytes, 3 * page);
  EXPECT_EQ(layout.group_of(0), 2);
  EXPECT_EQ(layout.group_of(1), 0);
  EXPECT_EQ(layout.group_of(3), 1);
}

TEST(MemoryLayout, HasASpineOfNoBytesWhereAllLayersHaveAWindow) {
  const MemoryLayout layout = layout_of({64, 64});
  ASSERT_EQ(layout.groups().size(), 2u);
  EXPECT_EQ(layout.groups()[0].page_bytes, 0);
}

PagedNeed heads_of(int32_t dim, int32_t window = 0) {
  return {.heads = 8, .k_dim = dim, .v_dim = dim, .window = window, .takes_codes = true};
}

// Bytes of a token and a head of 128: 138 of 512 (docs/compressed-kv.md).
TEST(MemoryLayout, HasPagesOfCodesAndHotOnes) {
  const auto layout = MemoryLayout::make(std::vector<MemoryNeed>(8, heads_of(128)), Format::kTq4);
  ASSERT_TRUE(layout) << layout.error().message;
  ASSERT_EQ(layout->groups().size(), 2u);
  EXPECT_EQ(layout->hot_group(), 1);
  EXPECT_TRUE(layout->groups()[1].hot);
  const int64_t four = 138 * 32 * 8, eight = 266 * 32 * 8;
  // The first, the third and the seventh have 8 bits.
  EXPECT_EQ(layout->groups()[0].page_bytes, 5 * four + 3 * eight);
  EXPECT_EQ(layout->groups()[1].page_bytes, 8 * 512 * 32 * 8);
  for (int32_t layer = 0; layer < 8; ++layer) {
    const bool bytes = layer == 0 || layer == 2 || layer == 6;
    EXPECT_EQ(layout->codes_of(layer).page_bytes, bytes ? eight : four) << layer;
    EXPECT_EQ(layout->codes_of(layer).k_bits, bytes ? 8 : 4) << layer;
    EXPECT_EQ(layout->pages_of(layer).page_bytes, 512 * 32 * 8) << layer;
  }
  const auto three = MemoryLayout::make({heads_of(128)}, Format::kTq3);
  EXPECT_EQ(three->groups()[0].page_bytes, 122 * 32 * 8);
  const auto bytes = MemoryLayout::make({heads_of(128)}, Format::kInt8);
  EXPECT_EQ(bytes->groups()[0].page_bytes, eight);
  // Running sequences have hot pages, and the prefix cache those of first blocks.
  const MemoryLoad load = {.running_max = 3, .rows_max = 64};
  EXPECT_EQ(page_counts(layout->groups(), 1000, load),
            (std::vector<int32_t>{1000, 3 * 3 + 2 + 3 + 1000 / 64}));
}

TEST(MemoryLayout, LeavesWindowsAndWhatTakesNoCodesAsTheyAre) {
  const PagedNeed latents{.heads = 1, .k_dim = 576, .v_dim = 512, .values_in_keys = true};
  const auto layout = MemoryLayout::make({heads_of(64, 128), heads_of(64), latents}, Format::kTq4);
  ASSERT_TRUE(layout) << layout.error().message;
  ASSERT_EQ(layout->groups().size(), 3u);
  EXPECT_EQ(layout->codes_of(0).page_bytes, 0);
  EXPECT_GT(layout->codes_of(1).page_bytes, 0);
  EXPECT_EQ(layout->codes_of(2).page_bytes, 0);
  EXPECT_EQ(layout->groups()[0].page_bytes, layout->codes_of(1).page_bytes + 576 * 32 * 2);
}

TEST(MemoryLayout, RefusesCodesWhereNothingTakesThem) {
  const PagedNeed latents{.heads = 1, .k_dim = 576, .v_dim = 512, .values_in_keys = true};
  const auto refused = MemoryLayout::make({latents, latents}, Format::kTq4);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("--kv-cache tq4"), std::string::npos);
  EXPECT_NE(refused.error().message.find("2 that keep other things (latents"), std::string::npos);
  EXPECT_FALSE(MemoryLayout::make({heads_of(64, 128)}, Format::kInt8));
  EXPECT_FALSE(MemoryLayout::make({heads_of(66)}, Format::kInt8));
  EXPECT_TRUE(MemoryLayout::make({heads_of(68)}, Format::kInt8));
}

TEST(MemoryLayout, HasNoMemoryForValuesThatAreInKeys) {
  const auto make = [](const PagedNeed& need) {
    return MemoryLayout::make({need}, FloatType::kF16);
  };
  PagedNeed need{.heads = 1, .k_dim = 576, .v_dim = 512, .values_in_keys = true};
  const auto layout = make(need);
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_EQ(layout->groups()[0].page_bytes, 576 * 32 * 2);
  EXPECT_TRUE(layout->pages_of(0).values_in_keys);
  EXPECT_EQ(layout->pages_of(0).v_dim, 512);
  EXPECT_EQ(layout->pages_of(0).head_bytes, 576 * 32 * 2);
  need.v_dim = 577;  // More than a key has.
  EXPECT_FALSE(make(need));
  need.k_dim = kernels::kValuesInKeysMax + 1;  // More than kernels widen.
  EXPECT_FALSE(make(need));
}

TEST(MemoryLayout, HasRoomForAKeyOfSeveralTokens) {
  const auto page_bytes = [](const PagedNeed& need) {
    const auto layout = MemoryLayout::make({need}, FloatType::kF16);
    return layout ? layout->groups()[0].page_bytes : -1;
  };
  PagedNeed need{.heads = 1, .k_dim = 64, .v_dim = 64, .values_in_keys = true};
  for (const auto& [tokens, keys] : {std::pair{1, 32}, {4, 8}, {5, 7}, {32, 1}, {128, 1}}) {
    need.tokens_per_key = tokens;
    EXPECT_EQ(need.page_keys(), keys);
    EXPECT_EQ(page_bytes(need), 64 * keys * 2) << tokens;
  }
  need.k_dim = need.v_dim = 33;  // Whole lines of the cache.
  EXPECT_EQ(page_bytes(need), 128);
  need.window = 64;
  EXPECT_EQ(page_bytes(need), -1);
  need.window = 0, need.tokens_per_key = 0;
  EXPECT_EQ(page_bytes(need), -1);
}

TEST(MemoryLayout, NarrowWindowsBeyondTheGroupsJoinTheNextWiderOne) {
  const MemoryLayout layout = layout_of({100, 200, 300, 400, 500, 0});
  ASSERT_EQ(layout.groups().size(), size_t{1 + kWindowsMax});
  EXPECT_EQ(layout.groups().back().window, 300);
  for (int32_t layer = 0; layer < 3; ++layer) EXPECT_EQ(layout.group_of(layer), 3);
  EXPECT_EQ(layout.group_of(4), 1);
  EXPECT_EQ(layout.group_of(5), 0);
}

TEST(MemoryLayout, KnowsTheFirstBlockThatAPositionSees) {
  for (const int32_t window : {1, 2, 31, 32, 33, 64, 100})
    for (int32_t next = 0; next < 400; ++next) {
      int32_t first = 0;  // The first position seen, by the definition of a window.
      while (first <= next - window) ++first;
      EXPECT_EQ(first_block_seen(next, window), first / kPageTokens) << next << " " << window;
    }
}

// What the bound says beside what sequences hold that stand anywhere and plan any number of rows.
TEST(MemoryLayout, TheBoundOfAWindowsPagesHoldsForEveryPlaceAndPlan) {
  for (const int32_t window : {1, 20, 32, 33, 100, 512})
    for (int32_t next = 0; next < 700; next += 7)
      for (const int32_t rows : {1, 2, 31, 32, 33, 64, 100, 500}) {
        const int32_t first = first_block_seen(next / kPageTokens * kPageTokens, window);
        const int32_t held = blocks_for(next + rows) - first;
        // Of one sequence the bound is rounded down, of many they add up.
        EXPECT_LE(100 * held, window_pages_held(window, {100, 100 * rows}));
      }
}

TEST(MemoryLayout, AWindowHasNeverMorePagesThanTheSpine) {
  const MemoryLayout layout = layout_of({0, 512});
  const MemoryLoad load = {.running_max = 8, .rows_max = 512};
  EXPECT_EQ(page_counts(layout.groups(), 20, load), (std::vector<int32_t>{20, 20}));
  const std::vector<int32_t> counts = page_counts(layout.groups(), 8000, load);
  EXPECT_EQ(counts[0], 8000);
  EXPECT_EQ(counts[1], 8 * (16 + 2) + 16 + 1000);
  // But for texts that come from disk.
  const MemoryLoad loading = {.running_max = 8, .rows_max = 512, .loads = 2};
  EXPECT_EQ(page_counts(layout.groups(), 20, loading), (std::vector<int32_t>{20, 20 + 2 * 16}));
  EXPECT_EQ(page_counts(layout.groups(), 8000, loading)[1], counts[1] + 2 * 16);
}

}  // namespace
}  // namespace weir::kv
