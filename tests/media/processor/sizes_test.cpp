#include "media/processor/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <random>

#include "media/processor/tile_grid.h"

namespace weir::media {

void PrintTo(const Size& size, std::ostream* out) { *out << size.width << " x " << size.height; }
void PrintTo(const TileGrid& grid, std::ostream* out) { *out << grid.columns << " x " << grid.rows; }

namespace {

// What each rule gives was computed by hand from its definition.
TEST(Sizes, EachRuleGivesWhatItsDefinitionSays) {
  EXPECT_EQ(with_shortest_edge({100, 70}, 56), (Size{80, 56}));
  EXPECT_EQ(with_shortest_edge({70, 100}, 56), (Size{56, 80}));
  EXPECT_EQ(within_edge({100, 70}, 84, 14), (Size{84, 70}));
  EXPECT_EQ(within_edge({50, 13}, 84, 14), (Size{56, 14})) << "a small picture is not enlarged";
  EXPECT_EQ(*within_pixels({100, 70}, 28, 1568, 7840), (Size{112, 56}));
  EXPECT_EQ(*within_pixels({1000, 700}, 28, 1568, 7840), (Size{84, 56}));
  EXPECT_EQ(*within_pixels({10, 7}, 28, 3136, 100000), (Size{84, 56}));
  EXPECT_EQ(*within_frame_pixels({100, 70}, 2, 2, 28, 3136, 18816), (Size{112, 56}));
  EXPECT_EQ(*within_frame_pixels({10, 7}, 2, 2, 28, 3136, 18816), (Size{56, 56}));
  EXPECT_EQ(within_tokens({100, 70}, 32, 4096, 16384), (Size{96, 64}));
  EXPECT_EQ(filling_pixels({100, 70}, 12, 10080), (Size{120, 84}));
  EXPECT_EQ(filling_pixels({10000, 1}, 48, 280 * 48 * 48), (Size{280 * 48, 48}));
  EXPECT_EQ(with_longest_edge({100, 70}, 112), (Size{112, 78}));
  EXPECT_EQ(with_longest_edge({70, 100}, 112), (Size{78, 112}));
  EXPECT_EQ(whole_tiles({112, 78}, 56), (Size{112, 112}));
  EXPECT_EQ(without_distortion({300, 200}, {200, 450}), (Size{200, 133}));
}

// Halves are rounded to even, as Python rounds.
TEST(Sizes, HalvesGoToEvenMultiples) {
  EXPECT_EQ(*within_pixels({28 * 2 + 14, 28 * 3 + 14}, 28, 1, 1 << 20), (Size{56, 112}));
}

TEST(Sizes, WhatIsTooLongIsRefused) {
  EXPECT_TRUE(within_pixels({2000, 10}, 28, 3136, 1 << 20));
  const Result<Size> refused = within_pixels({2001, 10}, 28, 3136, 1 << 20);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the image has 2001 x 10 pixels; this model takes images one side of which is at most "
            "200 times the other");
}

TEST(Sizes, BudgetsAreKept) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    const auto side = [&] { return static_cast<int64_t>(1 + random() % 3000); };
    const Size image = {side(), side()};
    if (const Result<Size> size = within_pixels(image, 28, 3136, 50176)) {
      ASSERT_EQ(size->width % 28 + size->height % 28, 0);
      ASSERT_GE(size->pixels(), 3136);
      // A side is at least one unit, so that the bound can be missed by pictures of lines only.
      if (std::min(size->width, size->height) > 28) {
        ASSERT_LE(size->pixels(), 50176);
      }
    }
    const Size filling = filling_pixels(image, 48, 280 * 48 * 48);
    ASSERT_LE(filling.pixels(), 280 * 48 * 48);
    ASSERT_GE(std::min(filling.width, filling.height), 48);
    const Size edge = within_edge(image, 1024, 16);
    ASSERT_LE(std::max(edge.width, edge.height), 1024);
  }
}

TEST(TileGrid, IsTheNearestInShape) {
  EXPECT_EQ(nearest_grid({100, 70}, {56, 56}, 1, 4), (TileGrid{2, 2})) << "half full";
  EXPECT_EQ(nearest_grid({50, 35}, {56, 56}, 1, 4), (TileGrid{1, 1}));
  EXPECT_EQ(nearest_grid({4000, 1000}, {448, 448}, 1, 12), (TileGrid{4, 1}));
  EXPECT_EQ(nearest_grid({1600, 900}, {512, 512}, 2, 10), (TileGrid{4, 2})) << "half full";
  EXPECT_EQ(nearest_grid({800, 450}, {512, 512}, 2, 10), (TileGrid{2, 1}));
  EXPECT_EQ(nearest_grid({1000, 4000}, {448, 448}, 1, 12), (TileGrid{1, 4}));
}

// The cases that the reference's documentation gives: 300 x 200 on tiles of 224 is 448 x 224.
TEST(TileGrid, ACanvasShrinksAPictureLeast) {
  EXPECT_EQ(best_canvas({300, 200}, 224, 3, false), (TileGrid{2, 1}));
  EXPECT_EQ(best_canvas({100, 70}, 56, 1, false), (TileGrid{1, 1}));
  EXPECT_EQ(best_canvas({100, 100}, 336, 16, false), (TileGrid{1, 1})) << "the smallest";
  EXPECT_EQ(best_canvas({100, 100}, 336, 16, true), (TileGrid{4, 4})) << "the largest";
  EXPECT_EQ(best_canvas({9000, 9000}, 336, 16, false), (TileGrid{4, 4}));
}

}  // namespace
}  // namespace weir::media
