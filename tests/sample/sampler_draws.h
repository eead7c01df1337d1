// What the sampler's tests share: kernels in their plainest form, random rows, and draws compared
// with a distribution.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "sample/sampler.h"

namespace weir::sample {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The three kernels that the sampler uses, in their plainest form.
inline kernels::Ops plain_ops() {
  kernels::Ops ops{};
  ops.argmax = [](const float* x, int32_t n) {
    int32_t best = 0;
    for (int32_t i = 1; i < n; ++i)
      if (x[i] > x[best] || (x[best] != x[best] && x[i] == x[i])) best = i;
    return best;
  };
  ops.log_sum_exp = [](const float* x, int32_t n) {
    const double largest = *std::max_element(x, x + n);
    double sum = 0;
    for (int32_t i = 0; i < n; ++i) sum += std::exp(x[i] - largest);
    return static_cast<float>(largest + std::log(sum));
  };
  ops.softmax = [](const float* x, int32_t n, float* y) {
    const double largest = *std::max_element(x, x + n);
    double sum = 0;
    for (int32_t i = 0; i < n; ++i) sum += std::exp(x[i] - largest);
    for (int32_t i = 0; i < n; ++i) y[i] = static_cast<float>(std::exp(x[i] - largest) / sum);
  };
  return ops;
}

inline std::vector<float> random_row(int32_t vocab, uint32_t seed, float spread = 3) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> row(static_cast<size_t>(vocab));
  for (float& x : row) x = normal(random);
  return row;
}

// Samples one row at many positions and compares what came out with the distribution expected:
// nothing outside it, and a chi-square within seven standard deviations of its mean.
inline void expect_draws(const std::vector<float>& row, const SamplingParams& params,
                         const std::vector<double>& expected, const std::string& what) {
  constexpr int kDraws = 6'000;
  const int32_t vocab = static_cast<int32_t>(row.size());
  const kernels::Ops ops = plain_ops();
  SamplerScratch scratch(vocab);
  Sampler sampler(params, {}, vocab, kDraws);
  std::vector<int> seen(row.size());
  for (int i = 0; i < kDraws; ++i) {
    std::vector<float> logits = row;
    ++seen[static_cast<size_t>(sampler.sample(logits, i, false, ops, scratch).chosen.token)];
  }
  double chi_square = 0, rest_seen = 0, rest_expected = 0;
  int cells = -1;
  for (size_t t = 0; t < row.size(); ++t) {
    const double mean = expected[t] * kDraws;
    if (expected[t] == 0) {
      EXPECT_EQ(seen[t], 0) << what << ": token " << t;
    } else if (mean >= 8) {
      chi_square += (seen[t] - mean) * (seen[t] - mean) / mean;
      ++cells;
    } else {
      rest_seen += seen[t];
      rest_expected += mean;
    }
  }
  if (rest_expected >= 8) {
    chi_square += (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected;
    ++cells;
  }
  if (cells > 0) {
    EXPECT_LT(chi_square, cells + 7 * std::sqrt(2.0 * cells) + 7) << what;
  }
}

}  // namespace weir::sample
