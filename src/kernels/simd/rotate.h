// Rotations of heads, over any Vec and Bytes: in the order of coded_ops.h, so the bits are
// scalar's.
#pragma once

#include <cstdint>

#include "kernels/coded_ops.h"
#include "kernels/simd/math.h"

namespace weir::kernels::simd {

// The transform of `count` vectors of numbers in parts of `width`, as far as it stays in a vector.
template <class V, class B>
[[gnu::always_inline]] inline void turn_in_lanes(int32_t width, int32_t count, float* x) {
  constexpr int kSteps = V::kLanes == 16 ? 4 : 3;
  const auto turn = [&](auto steps) __attribute__((always_inline)) {
    for (int32_t i = 0; i < count; i += V::kLanes) {
      const int32_t left = count - i;
      typename V::Float y = left >= V::kLanes ? V::load(x + i) : V::load(x + i, V::first(left));
      repeat<decltype(steps)::value>([&](auto s) __attribute__((always_inline)) {
        y = B::template butterfly<decltype(s)::value>(y);
      });
      if (left >= V::kLanes)
        V::store(x + i, y);
      else
        V::store(x + i, y, V::first(left));
    }
  };
  switch (width) {
    case 1:
      return;
    case 2:
      return turn(Index<1>{});
    case 4:
      return turn(Index<2>{});
    case 8:
      return turn(Index<3>{});
    default:
      return turn(Index<kSteps>{});
  }
}

// And as far as it does not.
template <class V>
[[gnu::always_inline]] inline void turn_across(int32_t width, int32_t count, float* x) {
  for (int32_t h = V::kLanes; h < width; h *= 2)
    for (int32_t begin = 0; begin < count; begin += 2 * h)
      for (int32_t i = begin; i < begin + h; i += V::kLanes) {
        const typename V::Float a = V::load(x + i), b = V::load(x + i + h);
        V::store(x + i, a + b);
        V::store(x + i + h, a - b);
      }
}

// The matrix over parts of `width` numbers.
template <class V>
[[gnu::always_inline]] inline void turn_orders(const Rotation& r, bool back, float* x) {
  float from[kCodedDimMax];
  const int32_t n = r.order * r.width;
  for (int32_t i = 0; i < n; ++i) from[i] = x[i];
  const int32_t row = back ? 1 : r.order, column = back ? r.order : 1;
  for (int32_t a = 0; a < r.order; ++a)
    for (int32_t b = 0; b < r.width; b += V::kLanes) {
      const typename V::Mask lanes = V::first(min(r.width - b, V::kLanes));
      typename V::Float sum = V::zero();
      for (int32_t c = 0; c < r.order; ++c)
        sum = V::fma(V::broadcast(r.matrix[a * row + c * column]),
                     V::load(from + c * r.width + b, lanes), sum);
      V::store(x + a * r.width + b, sum, lanes);
    }
}

template <class V>
[[gnu::always_inline]] inline void scale_numbers(float factor, int32_t n, float* x) {
  const typename V::Float f = V::broadcast(factor);
  int32_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) V::store(x + i, V::load(x + i) * f);
  for (; i < n; ++i) x[i] *= factor;
}

template <class V>
[[gnu::always_inline]] inline void apply_signs(const float* signs, int32_t n, float* x) {
  int32_t i = 0;
  for (; i + V::kLanes <= n; i += V::kLanes) V::store(x + i, V::load(x + i) * V::load(signs + i));
  for (; i < n; ++i) x[i] *= signs[i];
}

template <class V, class B>
void turn_part(const Rotation& r, bool back, float factor, float* x) {
  const int32_t n = r.order * r.width;
  turn_in_lanes<V, B>(r.width, n, x);
  turn_across<V>(r.width, n, x);
  if (r.order > 1) turn_orders<V>(r, back, x);
  scale_numbers<V>(factor, n, x);
}

// A head of N vectors, all of them powers of two, stays in registers.
template <class V, class B, int N, class Load, class Store>
[[gnu::always_inline]] inline void turn_whole(const Rotation& r, bool back, float factor,
                                              const Load& load, const Store& store) {
  constexpr int kSteps = V::kLanes == 16 ? 4 : 3;
  typename V::Float y[N];
  repeat<N>([&](auto i) __attribute__((always_inline)) {
    y[i] = load(i * V::kLanes, typename V::All{});
    if (!back) y[i] = y[i] * V::load(r.signs + i * V::kLanes);
    repeat<kSteps>([&](auto s) __attribute__((always_inline)) {
      y[i] = B::template butterfly<decltype(s)::value>(y[i]);
    });
  });
  const auto across = [&](auto step) __attribute__((always_inline)) {
    constexpr int kH = 1 << decltype(step)::value;
    if constexpr (kH < N)
      repeat<N>([&](auto i) __attribute__((always_inline)) {
        constexpr int kI = decltype(i)::value;
        if constexpr ((kI & kH) == 0) {
          const typename V::Float a = y[kI], b = y[kI + kH];
          y[kI] = a + b;
          y[kI + kH] = a - b;
        }
      });
  };
  repeat<4>(across);
  repeat<N>([&](auto i) __attribute__((always_inline)) {
    y[i] = y[i] * V::broadcast(factor);
    if (back) y[i] = y[i] * V::load(r.signs + i * V::kLanes);
    store(i * V::kLanes, y[i], typename V::All{});
  });
}

// What all numbers are multiplied by.
template <class V>
[[gnu::always_inline]] inline float rotation_factor(const Rotation& r) {
  float root[V::kLanes];
  V::store(root, V::sqrt(V::broadcast(static_cast<float>(r.order * r.width))));
  return 1 / root[0];
}

// One head, whose vector of numbers from i on is load(i, lanes), and goes to store(i, x, lanes).
template <class V, class B, class Load, class Store>
[[gnu::always_inline]] inline void turn_head(const Rotation& r, bool back, float factor,
                                             const Load& load, const Store& store) {
  if (r.width == r.dim && r.width == 4 * V::kLanes)
    return turn_whole<V, B, 4>(r, back, factor, load, store);
  if (r.width == r.dim && r.width == 8 * V::kLanes)
    return turn_whole<V, B, 8>(r, back, factor, load, store);
  float x[kCodedDimMax];
  const auto each = [&](const auto& fn) __attribute__((always_inline)) {
    for (int32_t i = 0; i < r.dim; i += V::kLanes) fn(i, V::first(min(r.dim - i, V::kLanes)));
  };
  each([&](int32_t i, auto lanes) { V::store(x + i, load(i, lanes), lanes); });
  if (!back) apply_signs<V>(r.signs, r.dim, x);
  turn_part<V, B>(r, back, factor, x);
  if (r.order * r.width < r.dim) {
    turn_part<V, B>(r, back, factor, x + r.dim - r.width);
    turn_part<V, B>(r, back, factor, x);
  }
  if (back) apply_signs<V>(r.signs, r.dim, x);
  each([&](int32_t i, auto lanes) { store(i, V::load(x + i, lanes), lanes); });
}

// Heads side by side, to where they come from or elsewhere.
template <class V, class B>
[[gnu::always_inline]] inline void turn_heads(const Rotation& r, bool back, float factor,
                                              int32_t heads, const float* from, float* to) {
  for (int32_t h = 0; h < heads; ++h, from += r.dim, to += r.dim)
    turn_head<V, B>(
        r, back, factor,
        [&](int32_t i, auto lanes)
            __attribute__((always_inline)) { return V::load(from + i, lanes); },
        [&](int32_t i, typename V::Float x, auto lanes)
            __attribute__((always_inline)) { V::store(to + i, x, lanes); });
}

template <class V, class B>
void rotate(const Rotation& r, bool back, int32_t heads, float* x) {
  turn_heads<V, B>(r, back, rotation_factor<V>(r), heads, x, x);
}

}  // namespace weir::kernels::simd
