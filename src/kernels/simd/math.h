// Elementary functions of vectors, each within about 3e-7 of the true value, relatively. The
// polynomials are minimax fits (Remez exchange, then rounded to float32); the error that a comment
// gives is the fit's own, rounding adds about 1e-7. NaN stays NaN.
//
// The templates of this folder are included by files with ISA flags, so they obey the rule of
// ops.h. What depends on the ISA is a template over its Vec, whose name has the ISA in it; the rest
// is always inlined: no function compiled with ISA flags can reach a file without them.
#pragma once

#include "kernels/unroll.h"

namespace weir::kernels::simd {

inline constexpr float kLog2E = 1.44269504088896341f;
// ln 2 in two parts; the first has zeros at its end, so that its product with |n| <= 128 is exact.
inline constexpr float kLn2High = 0.693359375f;
inline constexpr float kLn2Low = -2.12194440e-4f;
// Powers of two below 2^-126 are denormal, and slow: they become 0.
inline constexpr float kExponentMin = -126.0f;

[[gnu::always_inline]] constexpr int min(int a, int b) { return a < b ? a : b; }
[[gnu::always_inline]] constexpr int max(int a, int b) { return a > b ? a : b; }

// p[0] + x p[1] + x^2 p[2] ...
template <class V, int N>
[[gnu::always_inline]] inline typename V::Float polynomial(typename V::Float x,
                                                           const float (&p)[N]) {
  typename V::Float sum = V::broadcast(p[N - 1]);
  repeat<N - 1>([&](auto i) __attribute__((always_inline)) {
    sum = V::fma(sum, x, V::broadcast(p[N - 2 - i]));
  });
  return sum;
}

// 2^x for x <= 0; 0 below -126. The exponential of attention.
template <class V>
[[gnu::always_inline]] inline typename V::Float exp2_nonpositive(typename V::Float x) {
  using Float = typename V::Float;
  // 2^f = 1 + f q(f) on [-1/2, 1/2], 2e-9.
  constexpr float kCoefficients[] = {1.0f,           0.693147182f,   0.240226477f,   0.0555033274f,
                                     0.00961843785f, 0.00133988436f, 0.000153532863f};
  const Float least = V::broadcast(kExponentMin);
  const Float clamped = V::max(least, x);
  const Float n = V::round(clamped);
  const Float power = V::scale2(polynomial<V>(clamped - n, kCoefficients), n);
  return V::keep(V::not_less(x, least), power);
}

// e^x; 0 below 2^-126, and e^88 from 88 on.
template <class V>
[[gnu::always_inline]] inline typename V::Float exp(typename V::Float x) {
  using Float = typename V::Float;
  // e^r = 1 + r + r^2 q(r) on [-0.35, 0.35], 5e-9.
  constexpr float kCoefficients[] = {1.0f,          1.0f,           0.5f,          0.166665375f,
                                     0.0416662656f, 0.00836722646f, 0.00139475614f};
  constexpr float kLeast = -87.33f;
  const Float clamped = V::max(V::broadcast(kLeast), V::min(V::broadcast(88.0f), x));
  const Float n = V::round(clamped * V::broadcast(kLog2E));
  Float r = V::fnma(n, V::broadcast(kLn2High), clamped);
  r = V::fnma(n, V::broadcast(kLn2Low), r);
  const Float power = V::scale2(polynomial<V>(r, kCoefficients), n);
  return V::keep(V::not_less(x, V::broadcast(kLeast)), power);
}

// 1 / (1 + e^-x).
template <class V>
[[gnu::always_inline]] inline typename V::Float sigmoid(typename V::Float x) {
  const typename V::Float one = V::broadcast(1.0f);
  return one / (one + exp<V>(V::zero() - x));
}

// (e^2x - 1) / (e^2x + 1), with e^2x - 1 computed as such, so that small x keep their digits.
template <class V>
[[gnu::always_inline]] inline typename V::Float tanh(typename V::Float x) {
  using Float = typename V::Float;
  constexpr float kCoefficients[] = {0.5f, 0.166665375f, 0.0416662656f, 0.00836722646f,
                                     0.00139475614f};
  // From 10 on the result rounds to 1.
  const Float clamped = V::max(V::broadcast(-20.0f), V::min(V::broadcast(20.0f), x + x));
  const Float n = V::round(clamped * V::broadcast(kLog2E));
  Float r = V::fnma(n, V::broadcast(kLn2High), clamped);
  r = V::fnma(n, V::broadcast(kLn2Low), r);
  const Float expm1_r = V::fma(r * r, polynomial<V>(r, kCoefficients), r);
  const Float power = V::scale2(V::broadcast(1.0f), n);
  const Float expm1 = V::fma(power, expm1_r, power - V::broadcast(1.0f));
  return expm1 / (expm1 + V::broadcast(2.0f));
}

// erfc(z) for z >= 0: e^(-z^2) t p(t) with t = 1 / (1 + 0.35 z), 8e-9 up to z = 10.2, beyond which
// it is 0 in float32.
template <class V>
[[gnu::always_inline]] inline typename V::Float erfc_nonnegative(typename V::Float x) {
  using Float = typename V::Float;
  const Float z = V::min(V::broadcast(20.0f), x);
  constexpr float kCoefficients[] = {0.197482288f,  0.197165504f,  0.187689424f,   0.152129024f,
                                     0.143443108f,  0.0916532129f, -0.0330603458f, 0.185333923f,
                                     -0.160522014f, 0.0386858769f};
  const Float one = V::broadcast(1.0f);
  const Float t = one / V::fma(z, V::broadcast(0.35f), one);
  const Float square = z * z;
  // What z * z lost in rounding; e^-loss = 1 - loss.
  const Float loss = V::fma(z, z, V::zero() - square);
  const Float gauss = exp<V>(V::zero() - square) * (one - loss);
  return gauss * (t * polynomial<V>(t, kCoefficients));
}

}  // namespace weir::kernels::simd
