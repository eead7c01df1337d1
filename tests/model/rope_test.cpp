// Rope tables against the rules written out again, in double precision, and by hand.
#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace weir::model {
namespace {

std::vector<float> frequencies(const Rope& rope, int32_t length) {
  const RopeTable table(rope, 16);
  std::vector<float> out(static_cast<size_t>(rope.dim / 2));
  table.frequencies(length, out);
  return out;
}

TEST(Rope, PlainFrequenciesFallByPowersOfTheta) {
  const auto f = frequencies({.theta = 10000, .dim = 8}, 1);
  const std::vector<float> expected = {1, 0.1f, 0.01f, 0.001f};
  for (size_t i = 0; i < f.size(); ++i) EXPECT_NEAR(f[i], expected[i], 1e-6f * expected[i]);
}

TEST(Rope, LinearDividesByTheFactor) {
  const auto f = frequencies({.scaling = Rope::kLinear, .dim = 4, .factor = 4}, 1);
  EXPECT_FLOAT_EQ(f[0], 0.25f);
  EXPECT_FLOAT_EQ(f[1], 0.0025f);
}

// Which turn as if the others did too.
TEST(Rope, TheLastPairsMayStandStill) {
  const auto all = frequencies({.theta = 10000, .dim = 8}, 1);
  const auto some = frequencies({.theta = 10000, .dim = 8, .still_pairs = 3}, 1);
  EXPECT_EQ(some, (std::vector<float>{all[0], 0, 0, 0}));
}

TEST(Rope, LongRopeMaySayBothItsAmplitudes) {
  const RopeTable table({.scaling = Rope::kLongRope,
                         .dim = 4,
                         .original_context = 32,
                         .attention_factor = 2,
                         .long_attention_factor = 3,
                         .short_factor = {1, 1},
                         .long_factor = {2, 2}},
                        16);
  std::array<float, 4> own{};
  EXPECT_EQ(table.angles(RopePosition{0, 0, 0}, 32, own).cos[0], 2);
  EXPECT_EQ(table.angles(RopePosition{0, 0, 0}, 33, own).cos[0], 3);
}

TEST(Rope, DynamicStretchesThetaBeyondTheContextOnly) {
  const Rope rope = {
      .scaling = Rope::kDynamic, .theta = 10000, .dim = 8, .factor = 2, .original_context = 32};
  EXPECT_EQ(frequencies(rope, 32), frequencies({.theta = 10000, .dim = 8}, 1));
  const double theta = 10000 * std::pow(2.0 * 48 / 32 - 1, 8.0 / 6);
  const auto f = frequencies(rope, 48);
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(f[static_cast<size_t>(i)], std::pow(theta, -2.0 * i / 8),
                1e-6 * std::pow(theta, -2.0 * i / 8));
}

TEST(Rope, Llama3KeepsHighFrequenciesAndSlowsLowOnes) {
  const Rope rope = {
      .scaling = Rope::kLlama3, .theta = 500000, .dim = 32, .factor = 8, .original_context = 64};
  const auto f = frequencies(rope, 1);
  const auto plain = frequencies({.theta = 500000, .dim = 32}, 1);
  for (size_t i = 0; i < f.size(); ++i) {
    const double wavelength = 2 * std::numbers::pi / static_cast<double>(plain[i]);
    if (wavelength < 16) {
      EXPECT_FLOAT_EQ(f[i], plain[i]);
    } else if (wavelength > 64) {
      EXPECT_FLOAT_EQ(f[i], plain[i] / 8);
    } else {
      EXPECT_TRUE(f[i] < plain[i] && f[i] > plain[i] / 8);
    }
  }
}

TEST(Rope, LongRopeChoosesItsFactorsByLength) {
  const Rope rope = {.scaling = Rope::kLongRope,
                     .dim = 4,
                     .original_context = 32,
                     .attention_factor = 1.5f,
                     .short_factor = {1, 2},
                     .long_factor = {4, 5}};
  EXPECT_FLOAT_EQ(frequencies(rope, 32)[1], 0.01f / 2);
  EXPECT_FLOAT_EQ(frequencies(rope, 33)[1], 0.01f / 5);
  const RopeTable table(rope, 100);
  std::vector<float> own(4);
  const Angles a = table.angles(0, 33, own);
  EXPECT_FLOAT_EQ(a.cos[0], 1.5f);  // The attention factor scales cosines and sines.
  EXPECT_FLOAT_EQ(a.sin[0], 0);
}

TEST(Rope, AnglesBeyondTheTableAreThoseOfALongerTable) {
  const Rope rope = {.theta = 10000, .dim = 16};
  const RopeTable small(rope, 4), large(rope, 100);
  std::vector<float> own(16), other(16);
  for (const int32_t p : {0, 3, 4, 99}) {
    const Angles a = small.angles(p, p + 1, own), b = large.angles(p, p + 1, other);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(a.cos[i], b.cos[i]);
      EXPECT_EQ(a.sin[i], b.sin[i]);
      EXPECT_NEAR(a.cos[i], std::cos(p * std::pow(10000.0, -i / 8.0)), 1e-5);
    }
  }
}

}  // namespace
}  // namespace weir::model
