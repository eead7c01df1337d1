// Kernels over a row of logits, over any Vec. Elements of -inf are masked tokens; a row of nothing
// else has the log-sum -inf and the probabilities 0.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "kernels/simd/math.h"

namespace weir::kernels::simd {

// The largest element that is not NaN; -inf if there is none.
template <class V>
float largest_of(const float* x, int32_t n) {
  using Float = typename V::Float;
  constexpr int kL = V::kLanes;
  const Float none = V::broadcast(-__builtin_inff());
  Float max[4] = {none, none, none, none};
  int32_t i = 0;
  for (; i + 4 * kL <= n; i += 4 * kL) {
    repeat<4>([&](auto a) __attribute__((always_inline)) {
      max[a] = V::max(V::load(x + i + a * kL), max[a]);
    });
  }
  for (; i + kL <= n; i += kL) max[0] = V::max(V::load(x + i), max[0]);
  if (i < n) {
    const auto lanes = V::first(n - i);
    max[1] = V::max(V::select(lanes, V::load(x + i, lanes), none), max[1]);
  }
  return V::largest(V::max(V::max(max[0], max[1]), V::max(max[2], max[3])));
}

template <class V>
int32_t argmax(const float* x, int32_t n) {
  const float largest = largest_of<V>(x, n);
  const typename V::Float wanted = V::broadcast(largest);
  int32_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes)
    if (const uint32_t found = V::equal_bits(V::load(x + i), wanted); found != 0)
      return i + __builtin_ctz(found);
  for (; i < n; ++i)
    if (x[i] == largest) return i;
  return 0;  // All are NaN.
}

// The largest element, from which exponents are taken; 0 where all are -inf.
template <class V>
float reference_point(const float* x, int32_t n) {
  const float max = largest_of<V>(x, n);
  return max == -__builtin_inff() ? 0.0f : max;
}

// Sums of 64 vectors a lane, so that a long row's rounding errors stay small.
inline constexpr int kSumVecs = 64;

// The sum of exp(x - max), which also goes to y if that is not null.
template <class V, bool kStore>
[[gnu::always_inline]] inline double sum_of_exponentials(const float* x, float max, int32_t n,
                                                         float* y) {
  using Float = typename V::Float;
  const Float top = V::broadcast(max);
  double sum = 0;
  for (int32_t begin = 0; begin < n;) {
    const int32_t end = min(n - begin, kSumVecs * V::kLanes) + begin;
    Float part = V::zero();
    for (; begin + V::kLanes <= end; begin += V::kLanes) {
      const Float e = exp<V>(V::load(x + begin) - top);
      if constexpr (kStore) V::store(y + begin, e);
      part = part + e;
    }
    if (begin < end) {
      const auto lanes = V::first(end - begin);
      const Float e = exp<V>(V::load(x + begin, lanes) - top);
      if constexpr (kStore) V::store(y + begin, e, lanes);
      part = part + V::keep(lanes, e);
      begin = end;
    }
    sum += static_cast<double>(V::sum(part));
  }
  return sum;
}

template <class V>
float log_sum_exp(const float* x, int32_t n) {
  const float max = reference_point<V>(x, n);
  const double sum = sum_of_exponentials<V, false>(x, max, n, nullptr);
  return static_cast<float>(static_cast<double>(max) + __builtin_log(sum));
}

template <class V>
void softmax(const float* x, int32_t n, float* y) {
  const float max = reference_point<V>(x, n);
  const double sum = sum_of_exponentials<V, true>(x, max, n, y);
  const typename V::Float factor = V::broadcast(sum == 0 ? 0.0f : static_cast<float>(1 / sum));
  int32_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) V::store(y + i, V::load(y + i) * factor);
  if (i < n) V::store(y + i, V::load(y + i, V::first(n - i)) * factor, V::first(n - i));
}

template <class V>
void fill_logits(Ops& ops) {
  ops.argmax = argmax<V>;
  ops.log_sum_exp = log_sum_exp<V>;
  ops.softmax = softmax<V>;
}

}  // namespace weir::kernels::simd
