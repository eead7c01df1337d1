// How far numbers are from recorded ones. NaN counts as infinitely far: std::max drops it.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

namespace weir::check {

// The larger of two differences.
inline double worse_of(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::infinity() : std::max(a, b);
}

inline double largest_difference(std::span<const float> a, std::span<const float> b) {
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i)
    worst = worse_of(worst, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return worst;
}

// Root of the mean squared difference over that of `expected` itself.
inline double relative_rms(std::span<const float> found, std::span<const float> expected) {
  double differences = 0, squares = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double e = static_cast<double>(expected[i]), d = static_cast<double>(found[i]) - e;
    differences += d * d;
    squares += e * e;
  }
  return worse_of(0, std::sqrt(differences / squares));
}

// Kullback-Leibler divergence in nats of the tokens' probabilities from the expected ones, the mean
// over rows of `vocab` logits.
inline double mean_divergence(std::span<const float> found, std::span<const float> expected,
                              size_t vocab) {
  const auto log_sum = [](std::span<const float> row) {
    const double top = *std::ranges::max_element(row);
    double sum = 0;
    for (const float x : row) sum += std::exp(static_cast<double>(x) - top);
    return top + std::log(sum);
  };
  double all = 0;
  for (size_t begin = 0; begin < expected.size(); begin += vocab) {
    const auto e = expected.subspan(begin, vocab), f = found.subspan(begin, vocab);
    const double e_sum = log_sum(e), f_sum = log_sum(f);
    for (size_t i = 0; i < vocab; ++i) {
      const double wanted = static_cast<double>(e[i]) - e_sum;
      all += std::exp(wanted) * (wanted - (static_cast<double>(f[i]) - f_sum));
    }
  }
  return worse_of(0, all / (static_cast<double>(expected.size()) / static_cast<double>(vocab)));
}

}  // namespace weir::check
