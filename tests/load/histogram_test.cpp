// Percentiles of weir-load: the smallest sample that at least this share does not exceed.
#include "load/histogram.h"

#include <gtest/gtest.h>

namespace weir::load {
namespace {

TEST(Percentiles, AreTheSmallestSampleThatTheShareDoesNotExceed) {
  EXPECT_EQ(percentile_rank(0.5, 1), 0u);
  EXPECT_EQ(percentile_rank(0.5, 2), 0u);
  EXPECT_EQ(percentile_rank(0.5, 3), 1u);
  EXPECT_EQ(percentile_rank(0.9, 10), 8u);
  EXPECT_EQ(percentile_rank(0.99, 100), 98u);
  EXPECT_EQ(percentile_rank(0.99, 101), 99u);
  EXPECT_EQ(percentile_rank(1.0, 10), 9u);
  EXPECT_EQ(percentile_rank(0.0, 10), 0u);
  EXPECT_EQ(percentile_rank(0.07, 100), 6u) << "0.07 * 100 is a little more than 7";
}

TEST(Percentiles, OfGapsAreThoseOfTheSamples) {
  GapHistogram gaps;
  for (int i = 0; i < 99; ++i) gaps.add(1'000'000);
  gaps.add(500'000'000);
  EXPECT_NEAR(gaps.percentile_ms(0.99), 1, 0.02);
  EXPECT_NEAR(gaps.percentile_ms(1.0), 500, 5);
  GapHistogram two;
  two.add(1'000'000);
  two.add(100'000'000);
  EXPECT_NEAR(two.percentile_ms(0.5), 1, 0.02);
}

}  // namespace
}  // namespace weir::load
