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

// Some columns of a strip of a state.
struct DeltaColumns {
  float* first;    // In its first row.
  int64_t stride;  // From a row to the next.
  int32_t column;  // Of the whole state, where values and outputs lie.
};

// What the first token changes: the state is only read.
template <class V, int kVecs, class Lanes>
[[gnu::always_inline]] inline void delta_change(const DeltaRun& run, const DeltaColumns& at,
                                                Lanes lanes, typename V::Float (&change)[kVecs]) {
  using Float = typename V::Float;
  repeat<kVecs>([&](auto a) __attribute__((always_inline)) { change[a] = V::zero(); });
  const float* const k = run.k.x;
  const float* decay = run.decay.x;
  const float* row = at.first;
  for (int32_t i = 0; i < run.dk; ++i, row += at.stride, decay += run.key_decays) {
    const Float key = V::broadcast(k[i]), kept = V::broadcast(*decay);
    repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
      change[a] = V::fma(key, kept * V::load(row + a * V::kLanes, lanes), change[a]);
    });
  }
  const Float beta = V::broadcast(*run.beta.x);
  const float* const v = run.v.x + at.column;
  repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
    change[a] = beta * (V::load(v + a * V::kLanes, lanes) - change[a]);
  });
}

// One token: from what it changes to what the next one does. Between tokens the state has the next
// one's decay already, so that each element is read and written once: kFirst, it has not; kLast,
// there is no next.
template <class V, int kVecs, bool kFirst, bool kLast, class Lanes>
[[gnu::always_inline]] inline void delta_token(const DeltaRun& run, int64_t token,
                                               const DeltaColumns& at, Lanes lanes,
                                               typename V::Float (&change)[kVecs]) {
  using Float = typename V::Float;
  const int64_t then = kLast ? token : token + 1;
  const float* const q = run.q.of(token);
  const float* const k = run.k.of(token);
  const float* const next_k = run.k.of(then);
  const float* decay = run.decay.of(token);
  const float* next_decay = run.decay.of(then);
  const int64_t decay_step = run.key_decays ? 1 : 0;
  Float out[kVecs], next[kVecs];
  repeat<kVecs>([&](auto a) __attribute__((always_inline)) { out[a] = next[a] = V::zero(); });
  float* row = at.first;
  for (int32_t i = 0; i < run.dk; ++i, row += at.stride) {
    const Float key = V::broadcast(k[i]), query = V::broadcast(q[i]);
    Float s[kVecs];
    repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
      s[a] = V::load(row + a * V::kLanes, lanes);
      if constexpr (kFirst) s[a] = V::broadcast(*decay) * s[a];
      s[a] = V::fma(key, change[a], s[a]);
      out[a] = V::fma(query, s[a], out[a]);
    });
    if constexpr (!kLast) {
      const Float next_key = V::broadcast(next_k[i]), kept = V::broadcast(*next_decay);
      repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
        s[a] = kept * s[a];
        next[a] = V::fma(next_key, s[a], next[a]);
      });
    }
    repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
      V::store(row + a * V::kLanes, s[a], lanes);
    });
    decay += decay_step;
    next_decay += decay_step;
  }
  float* const y = run.out + token * run.out_stride + at.column;
  const Float beta = V::broadcast(*run.beta.of(then));
  const float* const v = run.v.of(then) + at.column;
  repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
    V::store(y + a * V::kLanes, out[a], lanes);
    if constexpr (!kLast) change[a] = beta * (V::load(v + a * V::kLanes, lanes) - next[a]);
  });
}

// All tokens of some columns, which stay in the innermost cache.
template <class V, int kVecs, class Lanes>
[[gnu::always_inline]] inline void delta_columns(const DeltaRun& run, const DeltaColumns& at,
                                                 Lanes lanes) {
  typename V::Float change[kVecs];
  delta_change<V, kVecs>(run, at, lanes, change);
  const int64_t last = run.tokens - 1;
  if (last == 0) return delta_token<V, kVecs, true, true>(run, 0, at, lanes, change);
  delta_token<V, kVecs, true, false>(run, 0, at, lanes, change);
  for (int64_t t = 1; t < last; ++t) delta_token<V, kVecs, false, false>(run, t, at, lanes, change);
  delta_token<V, kVecs, false, true>(run, last, at, lanes, change);
}

template <class V>
void delta_run(const DeltaRun& run) {
  // Sums that wait for one another take the time of an fma each. As many side by side as there are
  // registers for: three vectors of each column.
  constexpr int kMost = V::kLanes == 16 ? 4 : 2;
  for (int32_t first = 0; first < run.dv; first += kDeltaStrip) {
    const int32_t width = min(run.dv - first, kDeltaStrip);
    float* const strip = run.state + int64_t{first} * run.dk;
    const auto at = [&](int32_t c) { return DeltaColumns{strip + c, width, first + c}; };
    int32_t c = 0;
    for (; c + kMost * V::kLanes <= width; c += kMost * V::kLanes)
      delta_columns<V, kMost>(run, at(c), typename V::All{});
    for (; kMost > 2 && c + 2 * V::kLanes <= width; c += 2 * V::kLanes)
      delta_columns<V, 2>(run, at(c), typename V::All{});
    for (; c + V::kLanes <= width; c += V::kLanes)
      delta_columns<V, 1>(run, at(c), typename V::All{});
    if (c < width) delta_columns<V, 1>(run, at(c), V::first(width - c));
  }
}

// ln(1 + e^x).
template <class V>
[[gnu::always_inline]] inline typename V::Float softplus(typename V::Float x) {
  using Float = typename V::Float;
  // ln(1 + u) = u q(u) on [0, 1], 7e-10.
  constexpr float kCoefficients[] = {1.0f,          -0.499999821f,  0.333325595f,  -0.249872714f,
                                     0.19890748f,   -0.161056921f,  0.124184363f,  -0.0824417546f,
                                     0.0414782278f, -0.0134075303f, 0.00203024154f};
  const Float u = exp<V>(V::min(x, V::zero() - x));
  return V::fma(u, polynomial<V>(u, kCoefficients), V::max(V::zero(), x));
}

template <class V>
void delta_decays(const float* rate, const float* bias, int32_t n, float* x) {
  sweep<V>(
      n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        const typename V::Float sum = V::load(x + i, lanes) + V::load(bias + i, lanes);
        const typename V::Float kept = V::load(rate + i, lanes) * softplus<V>(sum);
        V::store(x + i, exp<V>(V::zero() - kept), lanes);
      });
}

// Calls columns(column, vecs, lanes) for pieces of dv columns of a state, vecs() vectors each. Sums
// that wait for one another take the time of an fma each: four of them hide it. Eight, where there
// are registers for them and their outputs, are whole rows of the usual 128 columns: a state that
// comes from memory is then read in one piece (bench/README.md, "States").
template <class V, class F>
[[gnu::always_inline]] inline void for_columns(int32_t dv, const F& columns) {
  constexpr int kMost = V::kLanes == 16 ? 8 : 4;
  int32_t column = 0;
  for (; column + kMost * V::kLanes <= dv; column += kMost * V::kLanes)
    columns(column, Index<kMost>{}, typename V::All{});
  for (; column + 4 * V::kLanes <= dv; column += 4 * V::kLanes)
    columns(column, Index<4>{}, typename V::All{});
  for (; column + V::kLanes <= dv; column += V::kLanes)
    columns(column, Index<1>{}, typename V::All{});
  if (column < dv) columns(column, Index<1>{}, V::first(dv - column));
}

// Some tokens of a run, from `first` on, in one pass over some columns of the state: each element
// is read and written once for all of them.
template <class V, int kTokens, int kVecs, class Lanes>
[[gnu::always_inline]] inline void decay_tokens(const DecayRun& run, int64_t first, int32_t column,
                                                Lanes lanes) {
  using Float = typename V::Float;
  Float decay[kTokens], value[kTokens][kVecs], out[kTokens][kVecs];
  repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
    decay[t] = V::broadcast(*run.decay.of(first + t));
    const Float gain = V::broadcast(*run.gain.of(first + t));
    const float* const v = run.v.of(first + t) + column;
    repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
      value[t][a] = gain * V::load(v + a * V::kLanes, lanes);
      out[t][a] = V::zero();
    });
  });
  const float* const q = run.q.of(first);
  const float* const k = run.k.of(first);
  float* row = run.state + column;
  for (int64_t i = 0; i < run.dk; ++i, row += run.dv) {
    Float s[kVecs];
    repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
      s[a] = V::load(row + a * V::kLanes, lanes);
    });
    repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
      const Float key = V::broadcast(k[t * run.k.stride + i]);
      const Float query = V::broadcast(q[t * run.q.stride + i]);
      repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
        s[a] = V::fma(key, value[t][a], decay[t] * s[a]);
        out[t][a] = V::fma(query, s[a], out[t][a]);
      });
    });
    repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
      V::store(row + a * V::kLanes, s[a], lanes);
    });
  }
  repeat<kTokens>([&](auto t) __attribute__((always_inline)) {
    float* const y = run.out + (first + t) * run.out_stride + column;
    repeat<kVecs>([&](auto a) __attribute__((always_inline)) {
      V::store(y + a * V::kLanes, out[t][a], lanes);
    });
  });
}

template <class V>
void decay_run(const DecayRun& run) {
  // Decays, values and outputs of four tokens, one vector of AVX2's or two of AVX-512's, fill the
  // registers.
  constexpr int kTokens = 4, kVecs = V::kLanes == 16 ? 2 : 1;
  const int64_t together = run.tokens / kTokens * kTokens;
  int32_t c = 0;
  const auto take = [&](auto vecs, auto lanes) __attribute__((always_inline)) {
    for (int64_t t = 0; t < together; t += kTokens)
      decay_tokens<V, kTokens, vecs.value>(run, t, c, lanes);
  };
  if (together > 0) {
    for (; c + kVecs * V::kLanes <= run.dv; c += kVecs * V::kLanes)
      take(Index<kVecs>{}, typename V::All{});
    for (; kVecs > 1 && c + V::kLanes <= run.dv; c += V::kLanes)
      take(Index<1>{}, typename V::All{});
    if (c < run.dv) take(Index<1>{}, V::first(run.dv - c));
  }
  for (int64_t t = together; t < run.tokens; ++t)
    for_columns<V>(
        run.dv, [&](int32_t column, auto vecs, auto lanes) __attribute__((always_inline)) {
          decay_tokens<V, 1, vecs.value>(run, t, column, lanes);
        });
}

// All tokens of a strip, or of the part of it that a vector is: `first` of the channels. Its states
// stay in the innermost cache. The exponentials of a token wait for nothing but its step, so they
// hide what its sum waits for.
template <class V, class Lanes>
[[gnu::always_inline]] inline void scan_channels(const SelectiveScan& scan, int32_t first,
                                                 Lanes lanes) {
  using Float = typename V::Float;
  const int32_t in_strip = first % kScanStrip;
  const int64_t at = int64_t{first - in_strip} * scan.states + in_strip;
  const Float skip = V::load(scan.skip + first, lanes);
  for (int64_t token = 0; token < scan.tokens; ++token) {
    const Float x = V::load(scan.x.of(token) + first, lanes);
    const Float step = softplus<V>(V::load(scan.step.of(token) + first, lanes));
    const Float fed = step * x;
    const float* const b = scan.b.of(token);
    const float* const c = scan.c.of(token);
    float* state = scan.state + at;
    const float* rate = scan.rate + at;
    Float out = V::zero();
    for (int32_t i = 0; i < scan.states; ++i, state += kScanStrip, rate += kScanStrip) {
      const Float kept = exp2_nonpositive<V>(step * V::load(rate, lanes));
      const Float h = V::fma(V::broadcast(b[i]), fed, kept * V::load(state, lanes));
      V::store(state, h, lanes);
      out = V::fma(V::broadcast(c[i]), h, out);
    }
    V::store(scan.out + token * scan.out_stride + first, V::fma(skip, x, out), lanes);
  }
}

template <class V>
void selective_scan(const SelectiveScan& scan) {
  static_assert(kScanStrip % V::kLanes == 0);
  sweep<V>(
      scan.channels, [&](int32_t first, auto lanes)
                         __attribute__((always_inline)) { scan_channels<V>(scan, first, lanes); });
}

template <class V>
void fill_states(Ops& ops) {
  ops.conv_step = conv_step<V>;
  ops.delta_run = delta_run<V>;
  ops.delta_decays = delta_decays<V>;
  ops.decay_run = decay_run<V>;
  ops.selective_scan = selective_scan<V>;
}

}  // namespace weir::kernels::simd
