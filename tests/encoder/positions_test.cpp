// Places in tables of learned positions, and in grids.
#include "encoder/positions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace weir::encoder {
namespace {

TEST(Positions, OfATableAsLargeAsTheGridAreTheTables) {
  for (const int32_t side : {1, 2, 7, 16, 26, 32, 64}) {
    for (int32_t i = 0; i < side; ++i) {
      EXPECT_EQ(bucket_of(i, side, side), i) << side;
      const Mixture mixture = antialiased(i, side, side);
      double sum = 0, place = 0;
      for (size_t j = 0; j < mixture.weights.size(); ++j) {
        sum += static_cast<double>(mixture.weights[j]);
        place += static_cast<double>(mixture.weights[j]) * (mixture.first + static_cast<double>(j));
      }
      EXPECT_NEAR(sum, 1, 1e-6);
      EXPECT_NEAR(place, i, 1e-5);
    }
  }
}

TEST(Positions, OfAFinerGridAreSpreadOverTheTable) {
  // Two places in each of three parts; four in three: 0, 1/4, 1/2, 3/4 of the way.
  const std::vector<int32_t> six = {0, 0, 1, 1, 2, 2}, four = {0, 0, 1, 2};
  for (int32_t i = 0; i < 6; ++i) EXPECT_EQ(bucket_of(i, 6, 3), six[static_cast<size_t>(i)]);
  for (int32_t i = 0; i < 4; ++i) EXPECT_EQ(bucket_of(i, 4, 3), four[static_cast<size_t>(i)]);
}

TEST(Positions, AreMixedBilinearlyWhereTheGridIsFiner) {
  // Pixels' centres: the second of four places lies at (1 + 1/2) / 2 - 1/2 = 1/4 of a table of two.
  const Mixture mixture = antialiased(1, 4, 2);
  ASSERT_EQ(mixture.first, 0);
  ASSERT_GE(mixture.weights.size(), 2u);
  EXPECT_NEAR(mixture.weights[0], 0.75, 1e-6);
  EXPECT_NEAR(mixture.weights[1], 0.25, 1e-6);
}

TEST(Positions, AreAveragedWithATriangleWhereTheTableIsFiner) {
  // Eight entries, two places: the first one's triangle has its top at 2 and reaches from -2 to 6.
  const Mixture mixture = antialiased(0, 2, 8);
  ASSERT_EQ(mixture.first, 0);
  ASSERT_EQ(mixture.weights.size(), 6u);
  std::vector<double> expected;
  for (int j = 0; j < 6; ++j) expected.push_back(1 - std::fabs(j + 0.5 - 2) / 4);
  const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
  for (size_t j = 0; j < 6; ++j) EXPECT_NEAR(mixture.weights[j], expected[j] / sum, 1e-6);
}

TEST(Positions, BetweenCornersBeginAndEndWithTheTable) {
  for (const int32_t count : {1, 2, 5, 9, 48, 100}) {
    for (int32_t i = 0; i < count; ++i) {
      const Mixture mixture = corner_to_corner(i, count, 9);
      double sum = 0, place = 0;
      for (size_t j = 0; j < mixture.weights.size(); ++j) {
        sum += static_cast<double>(mixture.weights[j]);
        place += static_cast<double>(mixture.weights[j]) * (mixture.first + static_cast<double>(j));
      }
      EXPECT_NEAR(sum, 1, 1e-6);
      EXPECT_NEAR(place, count == 1 ? 0 : 8.0 * i / (count - 1), 1e-5) << i << " of " << count;
      EXPECT_LE(mixture.first + std::ssize(mixture.weights), 9);
    }
  }
}

TEST(Positions, AreSampledBicubicallyAtTheMiddlesOfPlaces) {
  // As many places as entries: each is its own, whatever its neighbours are.
  for (int32_t i = 0; i < 6; ++i) {
    const Mixture mixture = bicubic(i, 6, 6);
    for (size_t j = 0; j < mixture.weights.size(); ++j)
      EXPECT_NEAR(mixture.weights[j], mixture.first + static_cast<int32_t>(j) == i ? 1 : 0, 1e-6);
  }
  // The second of three places of six entries lies half way between the middle ones.
  const Mixture middle = bicubic(1, 3, 6);
  ASSERT_EQ(middle.first, 1);
  ASSERT_EQ(middle.weights.size(), 4u);
  for (const size_t j : {0, 3}) EXPECT_NEAR(middle.weights[j], -0.09375, 1e-6);
  for (const size_t j : {1, 2}) EXPECT_NEAR(middle.weights[j], 0.59375, 1e-6);
  // Beyond its edge a table goes on as it ends: at a quarter before the first entry.
  const Mixture edge = bicubic(0, 4, 2);
  ASSERT_EQ(edge.first, 0);
  double sum = 0;
  for (const float weight : edge.weights) sum += static_cast<double>(weight);
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_NEAR(edge.weights[0], 1 + 0.10546875, 1e-6);
}

TEST(Positions, TurnByRowAndColumn) {
  const View::Place place = {.y = 3, .x = 5};
  constexpr int32_t kDim = 8;
  float angles[kDim];
  const auto expect = [&](Rope::Kind kind, const std::vector<double>& angle) {
    turn({.kind = kind, .theta = 100}, kDim, place, angles);
    for (size_t i = 0; i < angle.size(); ++i) {
      EXPECT_NEAR(angles[i], std::cos(angle[i]), 1e-6) << kind << " " << i;
      EXPECT_NEAR(angles[kDim / 2 + i], std::sin(angle[i]), 1e-6) << kind << " " << i;
    }
  };
  const double rate = 1 / std::sqrt(100.0), finer = std::pow(100, -0.25);
  expect(Rope::kEqualRates, {3, 3 * rate, 5, 5 * rate});
  expect(Rope::kInterleavedRates, {3, 3 * rate, 5 * finer, 5 * finer * rate});
  expect(Rope::kNeighbours, {6, 6 * rate, 4, 4 * rate});
  expect(Rope::kHalves, {5, 5 * rate, 3, 3 * rate});
}

TEST(View, HasARowForEachPlace) {
  for (const int32_t block : {1, 2, 4}) {
    View view = {.height = 8, .width = 12, .block = block, .before = 1, .row_begin = 100};
    std::vector<bool> seen(static_cast<size_t>(view.cells()));
    for (int32_t i = 0; i < view.cells(); ++i) {
      const View::Place place = view.place_of(i);
      EXPECT_EQ(view.row_at(place.y, place.x), view.grid_begin() + i);
      seen[static_cast<size_t>(place.y * view.width + place.x)] = true;
    }
    EXPECT_EQ(std::ranges::count(seen, true), view.cells());
  }
  // By windows of 6 x 6, smaller ones at the right and lower edge.
  View windows = {.height = 10, .width = 14, .block = 2, .window = 6, .row_begin = 100};
  std::vector<int32_t> ends;
  for (int32_t i = 0; i < windows.cells(); ++i) {
    const View::Place place = windows.place_of(i);
    EXPECT_EQ(windows.row_at(place.y, place.x), windows.grid_begin() + i);
    if (ends.empty() || ends.back() == i) ends.push_back(windows.window_end(i));
    EXPECT_EQ(windows.window_end(i), ends.back());
    View plain = windows;
    plain.window = 0;
    EXPECT_EQ(plain.row_at(place.y, place.x), plain.grid_begin() + windows.without_windows(i));
  }
  EXPECT_EQ(ends, (std::vector<int32_t>{36, 72, 84, 108, 132, 140}));
  // Blocks of two: the third row lies under the first.
  const View view = {.height = 4, .width = 4, .block = 2};
  EXPECT_EQ(view.place_of(2).y, 1);
  EXPECT_EQ(view.place_of(2).x, 0);
  EXPECT_EQ(view.place_of(4).x, 2);
}

}  // namespace
}  // namespace weir::encoder
