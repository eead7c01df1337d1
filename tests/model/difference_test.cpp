#include "../../tools/check/difference.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "../../tools/check/family_fixture.h"

namespace weir::check {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Difference, TakesNanForInfinitelyFarWhereverItStands) {
  EXPECT_EQ(worse_of(1, 2), 2);
  EXPECT_EQ(worse_of(std::nan(""), 2), kInfinity);
  EXPECT_EQ(worse_of(2, std::nan("")), kInfinity);
  const std::array<float, 3> expected = {3, 0, 4};
  EXPECT_EQ(largest_difference(std::array<float, 3>{3, 1, 2}, expected), 2);
  EXPECT_DOUBLE_EQ(relative_rms(std::array<float, 3>{3, 3, 8}, expected), 1);
  for (size_t i = 0; i < 3; ++i) {
    std::array<float, 3> found = expected;
    found[i] = kNan;
    EXPECT_EQ(largest_difference(found, expected), kInfinity) << i;
    EXPECT_EQ(relative_rms(found, expected), kInfinity) << i;
  }
}

TEST(Difference, OfProbabilitiesIsTheirMeanDivergence) {
  const float third = std::log(3.0f);
  const std::array<float, 4> expected = {0, 0, third, 0};  // 1/2, 1/2; 3/4, 1/4.
  const std::array<float, 4> found = {5 + third, 5, third, 0};
  EXPECT_NEAR(mean_divergence(expected, expected, 2), 0, 1e-12);
  EXPECT_NEAR(mean_divergence(found, expected, 2), std::log(4 / 3.0) / 4, 1e-6);
  std::array<float, 4> broken = found;
  broken[3] = kNan;
  EXPECT_EQ(mean_divergence(broken, expected, 2), kInfinity);
}

TEST(FamilyFixture, HoldsInexactModesToALooseBound) {
  FamilyFixture fixture;
  FamilyComparison c;
  c.chunked_equal = c.batched_equal = true;
  c.pass_difference = 1;
  c.pass_error = 0.05;
  EXPECT_EQ(family_failure(fixture, c, /*exact=*/false), "");
  EXPECT_NE(family_failure(fixture, c, /*exact=*/true), "");
  for (const double error : {0.5, kInfinity, std::nan("")}) {
    c.pass_error = error;
    EXPECT_NE(family_failure(fixture, c, /*exact=*/false), "") << error;
  }
}

}  // namespace
}  // namespace weir::check
