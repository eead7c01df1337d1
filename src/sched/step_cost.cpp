#include "sched/step_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weir::sched {

namespace {

// Of the next step in a running mean: eight steps back weigh a third.
constexpr double kFresh = 1.0 / 8;
// What older steps keep with each new one: about the last fifty count, and a little the last
// thousand.
constexpr double kKept = 0.98, kKeptLong = 0.999;
constexpr double kOldWeight = 0.01;
// Factors are counted in units that make them alike: a chunk of 64 tokens after a thousand.
constexpr std::array<double, 3> kUnits = {1, 64, 65536};
// What pulls the terms to 0 before the steps have told them apart, in steps: a token costs
// something before its chunk does.
constexpr std::array<double, 3> kPull = {0.1, 0.001, 0.001};
// The first chunk, before anything is known: short, and long enough to learn from.
constexpr int32_t kTokensFirst = 32;
// How the margin follows: as many steps exceed it as it falls, weighed, when one does not.
constexpr double kExceeding = 0.02;
constexpr double kMarginStep = 0.05;
// On a machine that others use steps take any time, and no chunk is short enough for those.
constexpr double kMarginMax = 1.5;
constexpr int32_t kTokensLimit = 1 << 20;  // More than any step has.

size_t bucket_of(int32_t rows) {
  return rows == 0 ? 0 : static_cast<size_t>(std::bit_width(static_cast<uint32_t>(rows - 1))) + 1;
}

std::array<double, 3> factors_of(const StepLoad& load) {
  return {1, load.prompt_tokens / kUnits[1], load.keys_seen / kUnits[2]};
}

// Gauss's elimination; the matrix is symmetric and positive definite, so that no row need move.
template <size_t kSize>
std::array<double, kSize> solve(std::array<std::array<double, kSize + 1>, kSize>& system) {
  for (size_t i = 0; i < kSize; ++i) {
    for (size_t row = 0; row < kSize; ++row) {
      if (row == i) continue;
      const double factor = system[row][i] / system[i][i];
      for (size_t j = i; j <= kSize; ++j) system[row][j] -= factor * system[i][j];
    }
  }
  std::array<double, kSize> found;
  for (size_t i = 0; i < kSize; ++i) found[i] = system[i][kSize] / system[i][i];
  return found;
}

}  // namespace

double StepCost::keys_seen(int32_t position, int32_t tokens) {
  return tokens * (position + (tokens + 1) / 2.0);
}

void StepCost::observe(const StepLoad& load, double seconds) {
  const size_t bucket = std::min<size_t>(bucket_of(load.decode_rows), kBuckets - 1);
  if (load.prompt_tokens == 0) {
    double& mean = decode_[bucket];
    mean = mean == 0 ? seconds : mean + kFresh * (seconds - mean);
    return;
  }
  learn_margin(load, seconds);
  const double rest = std::max(0.0, seconds - decode_seconds(load.decode_rows));
  const Terms factors = factors_of(load);
  recent_.add(factors, rest, kKept);
  old_.add(factors, rest, kKeptLong);
  learnt_ = true;
}

void StepCost::Moments::add(const Terms& factors, double seconds, double kept) {
  for (size_t i = 0; i < kTerms; ++i) {
    for (size_t j = 0; j < kTerms; ++j)
      products[i][j] = kept * products[i][j] + factors[i] * factors[j];
    times[i] = kept * times[i] + factors[i] * seconds;
  }
}

// Of these rows, or of the nearest number of rows that has been seen, more rather than fewer.
double StepCost::decode_seconds(int32_t rows) const {
  if (rows == 0) return 0;
  const size_t bucket = std::min<size_t>(bucket_of(rows), kBuckets - 1);
  for (size_t i = bucket; i < kBuckets; ++i)
    if (decode_[i] > 0) return decode_[i];
  for (size_t i = bucket; i-- > 1;)
    if (decode_[i] > 0) return decode_[i];
  return 0;
}

// A quantile without its samples: where steps up and down balance, kExceeding of all are above.
void StepCost::learn_margin(const StepLoad& load, double seconds) {
  if (!learnt_) return;
  const Terms rate = rates(), factors = factors_of(load);
  double expected = decode_seconds(load.decode_rows);
  for (size_t i = 0; i < kTerms; ++i) expected += rate[i] * factors[i];
  const double step = seconds > margin_ * expected ? 1 - kExceeding : -kExceeding;
  margin_ = std::clamp(margin_ * (1 + kMarginStep * step), 1.0, kMarginMax);
}

// The terms, in seconds a unit. One that would be negative is left out, and the others fitted
// again.
StepCost::Terms StepCost::rates() const {
  std::array<bool, kTerms> used;
  used.fill(true);
  while (true) {
    std::array<std::array<double, kTerms + 1>, kTerms> system{};
    for (size_t i = 0; i < kTerms; ++i) {
      system[i][i] = 1;
      if (!used[i]) continue;
      for (size_t j = 0; j < kTerms; ++j)
        system[i][j] = used[j] ? recent_.products[i][j] + kOldWeight * old_.products[i][j] : 0.0;
      system[i][i] += kPull[i];
      system[i][kTerms] = recent_.times[i] + kOldWeight * old_.times[i];
    }
    const Terms found = solve(system);
    const auto least = std::ranges::min_element(found);
    if (*least >= 0) return found;
    used[static_cast<size_t>(least - found.begin())] = false;
  }
}

int32_t StepCost::tokens_within(double seconds, int32_t decode_rows, int32_t position) const {
  if (!learnt_) return kTokensFirst;
  const Terms rate = rates();
  const double per_token = rate[1] / kUnits[1], per_key = rate[2] / kUnits[2];
  // per_key / 2 * n^2 + (per_token + per_key * (position + 1/2)) * n = left.
  const double left = seconds / margin_ - decode_seconds(decode_rows) - rate[0];
  if (left <= 0) return kTokensMin;
  const double linear = per_token + per_key * (position + 0.5);
  const double root = linear + std::sqrt(linear * linear + 2 * per_key * left);
  if (!(root > 0)) return kTokensLimit;  // Nothing has taken any time yet.
  const double tokens = 2 * left / root;
  return static_cast<int32_t>(std::clamp<double>(tokens, kTokensMin, kTokensLimit));
}

}  // namespace weir::sched
