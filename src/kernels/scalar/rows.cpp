// Row-wise kernels, the reference: the equations of ops.h in their plainest form, sums in double.
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/isa.h"
#include "kernels/ops.h"

namespace weir::kernels::scalar {

namespace {

void rms_norm(const float* x, const float* w, float eps, int32_t n, float* y) {
  double sum = 0;
  for (int32_t i = 0; i < n; ++i) sum += double{x[i]} * x[i];
  const auto factor = static_cast<float>(1 / std::sqrt(sum / n + eps));
  for (int32_t i = 0; i < n; ++i) y[i] = x[i] * factor * (w ? w[i] : 1.0f);
}

void layer_norm(const float* x, const float* w, const float* b, float eps, int32_t n, float* y) {
  double sum = 0;
  for (int32_t i = 0; i < n; ++i) sum += x[i];
  const double mean = sum / n;
  double squares = 0;
  for (int32_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double factor = 1 / std::sqrt(squares / n + eps);
  for (int32_t i = 0; i < n; ++i) {
    const auto normal = static_cast<float>((x[i] - mean) * factor);
    y[i] = normal * (w ? w[i] : 1.0f) + (b ? b[i] : 0.0f);
  }
}

void add_scaled(const float* x, float s, int32_t n, float* y) {
  for (int32_t i = 0; i < n; ++i) y[i] += s * x[i];
}

void scale(float s, int32_t n, float* y) {
  for (int32_t i = 0; i < n; ++i) y[i] *= s;
}

void product(const float* x, int32_t n, float* y) {
  for (int32_t i = 0; i < n; ++i) y[i] *= x[i];
}

void softcap(float cap, int32_t n, float* y) {
  for (int32_t i = 0; i < n; ++i) y[i] = cap * std::tanh(y[i] / cap);
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

float activate(Act act, float x) {
  switch (act) {
    case Act::kSilu:
      return x * sigmoid(x);
    case Act::kGeluTanh: {  // 0.5 x (1 + tanh u), u = sqrt(2 / pi) (x + 0.044715 x^3).
      const double u = 0.7978845608028654 * (x + 0.044715 * x * x * x);
      return static_cast<float>(x / (1 + std::exp(-2 * u)));  // Keeps the digits near tanh = -1.
    }
    case Act::kGelu:  // x Phi(x); erfc keeps the digits of small results.
      return static_cast<float>(0.5 * x * std::erfc(-x * 0.7071067811865476));
    case Act::kRelu2:
      return x > 0 ? x * x : 0;
    case Act::kRelu:
      return x > 0 ? x : 0;
    case Act::kQuickGelu:
      return x * sigmoid(1.702f * x);
    case Act::kSigmoid:
      return sigmoid(x);
  }
  return x;
}

// Comparisons with NaN are false: it stays.
float clamp(float x, float least, float most) { return x > most ? most : x < least ? least : x; }

void gated_act(const float* gate, const float* up, const GatedAct& act, int32_t n, float* y) {
  for (int32_t i = 0; i < n; ++i) {
    float g = gate[i], u = up[i];
    if (act.limit > 0) {
      g = clamp(g, -std::numeric_limits<float>::infinity(), act.limit);
      u = clamp(u, -act.limit, act.limit) + act.up_offset;
    }
    y[i] = activate(act.act, g) * u;
  }
}

void act(Act act, int32_t n, float* y) {
  for (int32_t i = 0; i < n; ++i) y[i] = activate(act, y[i]);
}

void xielu(const Xielu& act, int32_t n, float* y) {
  for (int32_t i = 0; i < n; ++i) {
    const double x = y[i];
    const double curve =
        x > 0 ? act.positive * x * x
              : act.negative * (std::expm1(std::min(x, static_cast<double>(act.least))) - x);
    y[i] = static_cast<float>(curve + act.beta * x);
  }
}

void rope(float* x, int32_t heads, int32_t head_dim, int32_t dims, const float* cos,
          const float* sin, bool interleaved) {
  const int32_t pairs = dims / 2;
  for (int32_t h = 0; h < heads; ++h, x += head_dim) {
    for (int32_t i = 0; i < pairs; ++i) {
      float& first = interleaved ? x[2 * i] : x[i];
      float& second = interleaved ? x[2 * i + 1] : x[i + pairs];
      const float a = first, b = second;
      first = a * cos[i] - b * sin[i];
      second = b * cos[i] + a * sin[i];
    }
  }
}

}  // namespace

void fill_rows(Ops& ops) {
  ops.rms_norm = rms_norm;
  ops.layer_norm = layer_norm;
  ops.add_scaled = add_scaled;
  ops.scale = scale;
  ops.product = product;
  ops.softcap = softcap;
  ops.gated_act = gated_act;
  ops.act = act;
  ops.xielu = xielu;
  ops.rope = rope;
}

}  // namespace weir::kernels::scalar
