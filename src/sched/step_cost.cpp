#include "sched/step_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weir::sched {

namespace {

// Of the next step in a running mean: eight steps back weigh a third.
constexpr double kFresh = 1.0 / 8;
// What older steps keep with each new one: about the last fifty count.
constexpr double kKept = 0.98;
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

}  // namespace

double StepCost::keys_seen(int32_t position, int32_t tokens) {
  return tokens * (position + (tokens + 1) / 2.0);
}

void StepCost::observe(const StepWork& work, double seconds) {
  const size_t bucket = std::min<size_t>(bucket_of(work.decode_rows), kBuckets - 1);
  if (work.prompt_tokens == 0) {
    double& mean = decode_[bucket];
    mean = mean == 0 ? seconds : mean + kFresh * (seconds - mean);
    return;
  }
  learn_margin(work, seconds);
  const double rest = std::max(0.0, seconds - decode_seconds(work.decode_rows));
  const double tokens = work.prompt_tokens, keys = work.keys_seen;
  tokens2_ = kKept * tokens2_ + tokens * tokens;
  cross_ = kKept * cross_ + tokens * keys;
  keys2_ = kKept * keys2_ + keys * keys;
  tokens_time_ = kKept * tokens_time_ + tokens * rest;
  keys_time_ = kKept * keys_time_ + keys * rest;
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
void StepCost::learn_margin(const StepWork& work, double seconds) {
  if (tokens2_ == 0) return;
  const Rates rate = rates();
  const double expected = decode_seconds(work.decode_rows) + rate.per_token * work.prompt_tokens +
                          rate.per_key * work.keys_seen;
  const double step = seconds > margin_ * expected ? 1 - kExceeding : -kExceeding;
  margin_ = std::clamp(margin_ * (1 + kMarginStep * step), 1.0, kMarginMax);
}

// Neither cost is negative; where the steps so far do not tell the two apart, all is the tokens'.
StepCost::Rates StepCost::rates() const {
  const double determinant = tokens2_ * keys2_ - cross_ * cross_;
  const Rates tokens_only{.per_token = tokens_time_ / tokens2_};
  if (determinant <= 1e-9 * tokens2_ * keys2_) return tokens_only;
  const double a = (tokens_time_ * keys2_ - keys_time_ * cross_) / determinant;
  const double b = (keys_time_ * tokens2_ - tokens_time_ * cross_) / determinant;
  if (a < 0) return {.per_key = keys_time_ / keys2_};
  return b < 0 ? tokens_only : Rates{.per_token = a, .per_key = b};
}

int32_t StepCost::tokens_within(double seconds, int32_t decode_rows, int32_t position) const {
  if (tokens2_ == 0) return kTokensFirst;
  const auto [per_token, per_key] = rates();
  // per_key / 2 * n^2 + (per_token + per_key * (position + 1/2)) * n = left.
  const double left = seconds / margin_ - decode_seconds(decode_rows);
  if (left <= 0) return kTokensMin;
  const double linear = per_token + per_key * (position + 0.5);
  const double root = linear + std::sqrt(linear * linear + 2 * per_key * left);
  if (!(root > 0)) return kTokensLimit;  // Nothing has taken any time yet.
  const double tokens = 2 * left / root;
  return static_cast<int32_t>(std::clamp<double>(tokens, kTokensMin, kTokensLimit));
}

}  // namespace weir::sched
