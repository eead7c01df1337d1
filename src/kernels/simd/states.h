// Kernels of states over any Vec. Channels and columns lie side by side in lanes, so that each sum
// has the order of the reference.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "kernels/simd/rows.h"

namespace weir::kernels::simd {

template <class V>
void conv_step(const ConvStep& conv, int32_t n, float* x) {
  sweep<V>(
      n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        const float* weight = conv.weights + i;
        float* past = conv.history + i;
        typename V::Float sum = V::zero();
        for (int32_t t = 1; t < conv.taps; ++t) {
          sum = V::fma(V::load(weight, lanes), V::load(past, lanes), sum);
          const float* const later = t + 1 < conv.taps ? past + conv.history_stride : x + i;
          V::store(past, V::load(later, lanes), lanes);
          weight += conv.weight_stride;
          past += conv.history_stride;
        }
        V::store(x + i, V::fma(V::load(weight, lanes), V::load(x + i, lanes), sum), lanes);
      });
}

// kVecs vectors of columns from `column` on. The state is read twice and written once: the decayed
// state of the first pass is computed again in the second, from the same numbers.
template <class V, int kVecs, class Lanes>
[[gnu::always_inline]] inline void delta_columns(const DeltaStep& step, int32_t column,
                                                 Lanes lanes) {
  using Float = typename V::Float;
  const Float decay = V::broadcast(step.decay), beta = V::broadcast(step.beta);
  Float change[kVecs], out[kVecs];
  repeat<kVecs>([&](auto a) __attribute__((always_inline)) { change[a] = out[a] = V::zero(); });
  float* row = step.state + column;
  for (int32_t i = 0; i < step.dk; ++i, row += step.dv) {
    const Float key = V::broadcast(step.k[i]);
    repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
      change[a] = V::fma(key, decay * V::load(row + a * V::kLanes, lanes), change[a]);
    });
  }
  const float* const v = step.v + column;
  repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
    change[a] = beta * (V::load(v + a * V::kLanes, lanes) - change[a]);
  });
  row = step.state + column;
  for (int32_t i = 0; i < step.dk; ++i, row += step.dv) {
    const Float key = V::broadcast(step.k[i]), query = V::broadcast(step.q[i]);
    repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
      float* const at = row + a * V::kLanes;
      const Float s = V::fma(key, change[a], decay * V::load(at, lanes));
      V::store(at, s, lanes);
      out[a] = V::fma(query, s, out[a]);
    });
  }
  repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
    V::store(step.out + column + a * V::kLanes, out[a], lanes);
  });
}

template <class V>
void delta_step(const DeltaStep& step) {
  // Sums that wait for one another take the time of an fma each: four of them hide it. Eight, where
  // there are registers for them and their outputs, are whole rows of the usual 128 columns: a
  // state that comes from memory is then read in one piece (bench/README.md, "States").
  constexpr int kMost = V::kLanes == 16 ? 8 : 4;
  int32_t column = 0;
  for (; column + kMost * V::kLanes <= step.dv; column += kMost * V::kLanes)
    delta_columns<V, kMost>(step, column, typename V::All{});
  for (; column + 4 * V::kLanes <= step.dv; column += 4 * V::kLanes)
    delta_columns<V, 4>(step, column, typename V::All{});
  for (; column + V::kLanes <= step.dv; column += V::kLanes)
    delta_columns<V, 1>(step, column, typename V::All{});
  if (column < step.dv) delta_columns<V, 1>(step, column, V::first(step.dv - column));
}

template <class V>
void fill_states(Ops& ops) {
  ops.conv_step = conv_step<V>;
  ops.delta_step = delta_step<V>;
}

}  // namespace weir::kernels::simd
