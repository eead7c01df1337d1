// Row-wise kernels over any Vec. The order of reduction is fixed by n alone: four accumulators of
// a vector each take the row's vectors in turn.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "kernels/simd/math.h"

namespace weir::kernels::simd {

// f(i, lanes) for each vector of a row of n: the elements from i on; `lanes` is All or, for the
// last vector of an odd row, a Mask.
template <class V, class F>
[[gnu::always_inline]] inline void sweep(int32_t n, const F& f) {
  int32_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) f(i, typename V::All{});
  if (i < n) f(i, V::first(n - i));
}

// The sum over a row of term(i, lanes), which has 0 in lanes after the row.
template <class V, class F>
[[gnu::always_inline]] inline float sum_of(int32_t n, const F& term) {
  constexpr int kL = V::kLanes;
  typename V::Float sum[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
  int32_t i = 0;
  for (; i + 4 * kL <= n; i += 4 * kL) {
    repeat<4>([&](auto a) __attribute__((always_inline)) {
      sum[a] = sum[a] + term(i + a * kL, typename V::All{});
    });
  }
  for (; i + kL <= n; i += kL) sum[0] = sum[0] + term(i, typename V::All{});
  if (i < n) sum[1] = sum[1] + term(i, V::first(n - i));
  return V::sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

template <class V>
[[gnu::always_inline]] inline float root(float x) {
  float lanes[V::kLanes];
  V::store(lanes, V::sqrt(V::broadcast(x)));
  return lanes[0];
}

template <class V>
void rms_norm(const float* x, const float* w, float eps, int32_t n, float* y) {
  const float squares = sum_of<V>(
      n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        const typename V::Float v = V::load(x + i, lanes);
        return v * v;
      });
  const float scale = 1.0f / root<V>(squares / static_cast<float>(n) + eps);
  const typename V::Float factor = V::broadcast(scale);
  if (w != nullptr) {
    sweep<V>(
        n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
          V::store(y + i, V::load(x + i, lanes) * factor * V::load(w + i, lanes), lanes);
        });
  } else {
    sweep<V>(
        n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
          V::store(y + i, V::load(x + i, lanes) * factor, lanes);
        });
  }
}

template <class V>
void layer_norm(const float* x, const float* w, const float* b, float eps, int32_t n, float* y) {
  using Float = typename V::Float;
  const auto count = static_cast<float>(n);
  const Float mean =
      V::broadcast(sum_of<V>(
                       n, [&](int32_t i, auto lanes)
                              __attribute__((always_inline)) { return V::load(x + i, lanes); }) /
                   count);
  const float squares = sum_of<V>(
      n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        const Float d = V::keep(lanes, V::load(x + i, lanes) - mean);
        return d * d;
      });
  const Float factor = V::broadcast(1.0f / root<V>(squares / count + eps));
  sweep<V>(
      n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        Float v = (V::load(x + i, lanes) - mean) * factor;
        if (w != nullptr) v = v * V::load(w + i, lanes);
        if (b != nullptr) v = v + V::load(b + i, lanes);
        V::store(y + i, v, lanes);
      });
}

template <class V>
void add_scaled(const float* x, float s, int32_t n, float* y) {
  const typename V::Float factor = V::broadcast(s);
  sweep<V>(
      n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        V::store(y + i, V::fma(factor, V::load(x + i, lanes), V::load(y + i, lanes)), lanes);
      });
}

template <class V>
void scale(float s, int32_t n, float* y) {
  const typename V::Float factor = V::broadcast(s);
  sweep<V>(
      n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        V::store(y + i, V::load(y + i, lanes) * factor, lanes);
      });
}

template <class V>
void product(const float* x, int32_t n, float* y) {
  sweep<V>(
      n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        V::store(y + i, V::load(x + i, lanes) * V::load(y + i, lanes), lanes);
      });
}

template <class V>
void softcap(float cap, int32_t n, float* y) {
  const typename V::Float limit = V::broadcast(cap);
  sweep<V>(
      n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        V::store(y + i, limit * tanh<V>(V::load(y + i, lanes) / limit), lanes);
      });
}

template <class V, Act kAct>
[[gnu::always_inline]] inline typename V::Float activate(typename V::Float x) {
  using Float = typename V::Float;
  if constexpr (kAct == Act::kSilu) {
    return x * sigmoid<V>(x);
  } else if constexpr (kAct == Act::kGeluTanh) {
    // (1 + tanh(u)) / 2 = sigmoid(2u), without the loss of digits where tanh is near -1.
    const Float cube = x * x * x;
    const Float u = V::fma(V::broadcast(0.044715f), cube, x);
    return x * sigmoid<V>(V::broadcast(1.5957691216057308f) * u);
  } else if constexpr (kAct == Act::kGelu) {
    // x Phi(x), with Phi(x) = erfc(-x / sqrt 2) / 2, and erfc(-z) = 2 - erfc(z).
    const Float magnitude = V::max(x, V::zero() - x);
    const Float tail = erfc_nonnegative<V>(magnitude * V::broadcast(0.70710678118654752f));
    const auto positive = V::greater(x, V::zero());
    const Float both = V::select(positive, V::broadcast(2.0f) - tail, tail);
    return x * V::broadcast(0.5f) * both;
  } else if constexpr (kAct == Act::kRelu2) {
    const Float positive = V::max(x, V::zero());
    return positive * positive;
  } else if constexpr (kAct == Act::kRelu) {
    return V::max(x, V::zero());
  } else if constexpr (kAct == Act::kQuickGelu) {
    return x * sigmoid<V>(V::broadcast(1.702f) * x);
  } else {
    static_assert(kAct == Act::kSigmoid);
    return sigmoid<V>(x);
  }
}

// Calls f with the activation as a type of its own.
template <Act kAct>
struct ActTag {
  static constexpr Act act = kAct;
};

template <class F>
[[gnu::always_inline]] inline void with_act(Act act, const F& f) {
  switch (act) {
    case Act::kSilu:
      return f(ActTag<Act::kSilu>{});
    case Act::kGeluTanh:
      return f(ActTag<Act::kGeluTanh>{});
    case Act::kGelu:
      return f(ActTag<Act::kGelu>{});
    case Act::kRelu2:
      return f(ActTag<Act::kRelu2>{});
    case Act::kRelu:
      return f(ActTag<Act::kRelu>{});
    case Act::kQuickGelu:
      return f(ActTag<Act::kQuickGelu>{});
    case Act::kSigmoid:
      return f(ActTag<Act::kSigmoid>{});
  }
}

template <class V, Act kAct>
void gated_act_of(const float* gate, const float* up, int32_t n, float* y) {
  sweep<V>(
      n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        V::store(y + i, activate<V, kAct>(V::load(gate + i, lanes)) * V::load(up + i, lanes),
                 lanes);
      });
}

// min and max give their second operand where one is NaN: it stays.
template <class V, Act kAct>
void limited_act_of(const float* gate, const float* up, const GatedAct& act, int32_t n, float* y) {
  const typename V::Float most = V::broadcast(act.limit), least = V::broadcast(-act.limit);
  const typename V::Float offset = V::broadcast(act.up_offset);
  sweep<V>(
      n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        const typename V::Float g = V::min(most, V::load(gate + i, lanes));
        const typename V::Float u = V::max(least, V::min(most, V::load(up + i, lanes)));
        V::store(y + i, activate<V, kAct>(g) * (u + offset), lanes);
      });
}

template <class V>
void gated_act(const float* gate, const float* up, const GatedAct& act, int32_t n, float* y) {
  with_act(act.act, [&](auto tag) {
    if (act.limit > 0) return limited_act_of<V, decltype(tag)::act>(gate, up, act, n, y);
    gated_act_of<V, decltype(tag)::act>(gate, up, n, y);
  });
}

template <class V, Act kAct>
void act_of(int32_t n, float* y) {
  sweep<V>(
      n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        V::store(y + i, activate<V, kAct>(V::load(y + i, lanes)), lanes);
      });
}

template <class V>
void act(Act act, int32_t n, float* y) {
  with_act(act, [&](auto tag) { act_of<V, decltype(tag)::act>(n, y); });
}

template <class V>
void rope_halves(float* x, int32_t pairs, const float* cos, const float* sin) {
  sweep<V>(
      pairs, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        const typename V::Float a = V::load(x + i, lanes), b = V::load(x + pairs + i, lanes);
        const typename V::Float c = V::load(cos + i, lanes), s = V::load(sin + i, lanes);
        V::store(x + i, V::fnma(b, s, a * c), lanes);
        V::store(x + pairs + i, V::fma(a, s, b * c), lanes);
      });
}

template <class V>
void rope_interleaved(float* x, int32_t pairs, const float* cos, const float* sin) {
  constexpr int32_t kPairs = V::kLanes / 2;
  sweep<V>(
      2 * pairs, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        const typename V::Float v = V::load(x + i, lanes);
        const int32_t here = min(pairs - i / 2, kPairs);
        const typename V::Float c = V::load_twice(cos + i / 2, here);
        const typename V::Float s = V::load_twice(sin + i / 2, here);
        V::store(x + i, V::fma_alternate(v, c, V::swap_pairs(v) * s), lanes);
      });
}

// e^x - 1 - x for x <= 0. Near 0 by its series, whose next term is 4e-8 of the whole at -1/2.
template <class V>
[[gnu::always_inline]] inline typename V::Float exp_beyond_line(typename V::Float x) {
  using Float = typename V::Float;
  Float series = V::broadcast(1.0f / 40320);
  constexpr float kTerms[] = {1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2};
  for (const float term : kTerms) series = V::fma(series, x, V::broadcast(term));
  const Float far = (exp<V>(x) - V::broadcast(1)) - x;
  return V::select(V::greater(x, V::broadcast(-0.5f)), series * x * x, far);
}

template <class V>
void xielu(const Xielu& act, int32_t n, float* y) {
  using Float = typename V::Float;
  const Float positive = V::broadcast(act.positive), negative = V::broadcast(act.negative);
  const Float beta = V::broadcast(act.beta), least = V::broadcast(act.least);
  sweep<V>(
      n, [&](int32_t i, auto lanes) __attribute__((always_inline)) {
        const Float x = V::load(y + i, lanes);
        const Float low = V::min(least, x);
        const Float below = negative * (exp_beyond_line<V>(low) + (low - x));
        const Float curve = V::select(V::greater(x, V::zero()), positive * x * x, below);
        V::store(y + i, V::fma(beta, x, curve), lanes);
      });
}

template <class V>
void rope(float* x, int32_t heads, int32_t head_dim, int32_t dims, const float* cos,
          const float* sin, bool interleaved) {
  for (int32_t h = 0; h < heads; ++h, x += head_dim) {
    if (interleaved) {
      rope_interleaved<V>(x, dims / 2, cos, sin);
    } else {
      rope_halves<V>(x, dims / 2, cos, sin);
    }
  }
}

template <class V>
void fill_rows(Ops& ops) {
  ops.rms_norm = rms_norm<V>;
  ops.layer_norm = layer_norm<V>;
  ops.add_scaled = add_scaled<V>;
  ops.scale = scale<V>;
  ops.product = product<V>;
  ops.softcap = softcap<V>;
  ops.gated_act = gated_act<V>;
  ops.act = act<V>;
  ops.xielu = xielu<V>;
  ops.rope = rope<V>;
}

}  // namespace weir::kernels::simd
