// Divergences of logits against the definition, computed from probabilities in long double.
#include "measure/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace weir::measure {
namespace {

std::vector<long double> probabilities(const std::vector<float>& logits) {
  std::vector<long double> out;
  long double sum = 0;
  for (const float x : logits) sum += out.emplace_back(std::exp(static_cast<long double>(x)));
  for (long double& p : out) p /= sum;
  return out;
}

double by_definition(const std::vector<float>& reference, const std::vector<float>& model) {
  const std::vector<long double> p = probabilities(reference), q = probabilities(model);
  long double sum = 0;
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) sum += p[i] * std::log(p[i] / q[i]);
  return static_cast<double>(sum);
}

TEST(Divergence, IsThatOfTheDefinition) {
  std::mt19937 random(1);
  for (const float spread : {0.1f, 1.0f, 10.0f})
    for (const float error : {1e-3f, 0.1f, 3.0f}) {
      std::normal_distribution<float> logit(5, spread), noise(0, error);
      std::vector<float> reference(1000), model(1000);
      for (size_t i = 0; i < reference.size(); ++i)
        model[i] = (reference[i] = logit(random)) + noise(random);
      const double expected = by_definition(reference, model);
      EXPECT_NEAR(compare_logits(reference, model).kl, expected, 1e-12 + 1e-9 * expected)
          << spread << " " << error;
    }
}

TEST(Divergence, OfEqualDistributionsIsNothing) {
  std::mt19937 random(2);
  std::normal_distribution<float> logit(-3, 20);
  std::vector<float> reference(5000);
  for (float& x : reference) x = logit(random);
  EXPECT_EQ(compare_logits(reference, reference).kl, 0);
  // A softmax does not see what is added to all. Quarters: sums of such floats are exact.
  std::vector<float> quarters, moved;
  for (const float x : reference) {
    quarters.push_back(std::rint(4 * x) / 4);
    moved.push_back(quarters.back() + 64);
  }
  EXPECT_EQ(compare_logits(quarters, moved).kl, 0);
}

TEST(Divergence, StandsLargeLogitsAndMaskedTokens) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const double half =
      compare_logits(std::vector{1000.0f, 1000.0f}, std::vector{-1000.0f, -1000.0f}).kl;
  EXPECT_EQ(half, 0);
  EXPECT_NEAR(compare_logits(std::vector{0.0f, -kInfinity}, std::vector{0.0f, 0.0f}).kl,
              std::log(2), 1e-15);
  EXPECT_EQ(compare_logits(std::vector{0.0f, -kInfinity}, std::vector{5.0f, -kInfinity}).kl, 0);
  EXPECT_EQ(compare_logits(std::vector{0.0f, 0.0f}, std::vector{0.0f, -kInfinity}).kl, kInfinity);
  EXPECT_TRUE(std::isnan(compare_logits(std::vector{0.0f, 1.0f}, std::vector{0.0f, NAN}).kl));
}

TEST(Divergence, KnowsWhetherTheMostLikelyTokenIsTheSame) {
  EXPECT_TRUE(
      compare_logits(std::vector{1.0f, 3.0f, 2.0f}, std::vector{1.0f, 9.0f, 8.0f}).same_top);
  EXPECT_FALSE(
      compare_logits(std::vector{1.0f, 3.0f, 2.0f}, std::vector{1.0f, 8.0f, 9.0f}).same_top);
}

TEST(Divergence, TalliesMeanErrorQuantilesAndShare) {
  DivergenceTally tally;
  for (int i = 100; i >= 1; --i) tally.add({.kl = static_cast<double>(i), .same_top = i % 4 == 0});
  EXPECT_DOUBLE_EQ(tally.mean(), 50.5);
  EXPECT_NEAR(tally.mean_error(), std::sqrt((100.0 * 100 - 1) / 12) / 10, 1e-12);
  EXPECT_EQ(tally.quantile(0.5), 50);
  EXPECT_EQ(tally.quantile(0.99), 99);
  EXPECT_EQ(tally.quantile(0), 1);
  EXPECT_EQ(tally.quantile(1), 100);
  EXPECT_DOUBLE_EQ(tally.same_top_share(), 0.25);
}

}  // namespace
}  // namespace weir::measure
