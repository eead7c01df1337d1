#include "measure/divergence.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace weir::measure {

Divergence compare_logits(std::span<const float> reference, std::span<const float> model) {
  CHECK(!reference.empty() && reference.size() == model.size());
  const auto best = std::ranges::max_element(reference), other = std::ranges::max_element(model);
  // With Z = sum e^(x - max): sum p (ln p - ln q) = sum p (x - y) - ln Zx - max x + ln Zy + max y,
  // and the maxima go into the differences, which keeps equal logits at 0 exactly.
  const double x_max = *best, y_max = *other;
  double x_sum = 0, y_sum = 0, weighted = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const double x = reference[i] - x_max, y = model[i] - y_max;
    y_sum += std::exp(y);
    const double weight = std::exp(x);
    if (weight == 0) continue;  // Whatever the model says of it, were it minus infinity.
    x_sum += weight;
    weighted += weight * (x - y);
  }
  const double kl = weighted / x_sum - std::log(x_sum) + std::log(y_sum);
  return {.kl = kl < 0 ? 0 : kl,  // By rounding.
          .same_top = best - reference.begin() == other - model.begin()};
}

void DivergenceTally::add(const Divergence& divergence) {
  CHECK(!std::isnan(divergence.kl));
  values_.push_back(divergence.kl);
  same_top_ += divergence.same_top ? 1 : 0;
}

double DivergenceTally::mean() const {
  double sum = 0;
  for (const double value : values_) sum += value;
  return sum / static_cast<double>(values_.size());
}

double DivergenceTally::mean_error() const {
  const double centre = mean();
  double squares = 0;
  for (const double value : values_) squares += (value - centre) * (value - centre);
  return std::sqrt(squares) / static_cast<double>(values_.size());
}

double DivergenceTally::quantile(double part) const {
  std::vector<double> sorted = values_;
  const double rank = std::ceil(part * static_cast<double>(sorted.size())) - 1;
  const auto at = sorted.begin() + static_cast<std::ptrdiff_t>(std::max(0.0, rank));
  std::ranges::nth_element(sorted, at);
  return *at;
}

double DivergenceTally::same_top_share() const {
  return static_cast<double>(same_top_) / static_cast<double>(values_.size());
}

}  // namespace weir::measure
