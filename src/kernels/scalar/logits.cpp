// Kernels over a row of logits, the reference. Elements of -inf are masked tokens; a row of nothing
// else has the log-sum -inf and the probabilities 0.
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/isa.h"
#include "kernels/ops.h"

namespace weir::kernels::scalar {

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

int32_t argmax(const float* x, int32_t n) {
  int32_t best = -1;
  for (int32_t i = 0; i < n; ++i)
    if (best < 0 ? !std::isnan(x[i]) : x[i] > x[best]) best = i;
  return best < 0 ? 0 : best;
}

// The largest element, from which exponents are taken; 0 where all are -inf.
float reference_point(const float* x, int32_t n) {
  float max = kNone;
  for (int32_t i = 0; i < n; ++i) max = x[i] > max ? x[i] : max;
  return max == kNone ? 0.0f : max;
}

float log_sum_exp(const float* x, int32_t n) {
  const float max = reference_point(x, n);
  double sum = 0;
  for (int32_t i = 0; i < n; ++i) sum += std::exp(double{x[i]} - max);
  return static_cast<float>(max + std::log(sum));
}

void softmax(const float* x, int32_t n, float* y) {
  const float max = reference_point(x, n);
  double sum = 0;
  for (int32_t i = 0; i < n; ++i) sum += y[i] = std::exp(x[i] - max);
  const double factor = sum == 0 ? 0 : 1 / sum;
  for (int32_t i = 0; i < n; ++i) y[i] = static_cast<float>(y[i] * factor);
}

}  // namespace

void fill_logits(Ops& ops) {
  ops.argmax = argmax;
  ops.log_sum_exp = log_sum_exp;
  ops.softmax = softmax;
}

}  // namespace weir::kernels::scalar
