#include "kernels/scalar/quantise.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/scalar/widen.h"

namespace weir::kernels::scalar {
namespace {

// The scale of a group and what multiplies its elements. Magnitudes are compared as integers, in
// which a NaN is larger than all numbers: it poisons its group's scale instead of disappearing.
struct GroupScale {
  float scale;
  float inverse;
};

GroupScale group_scale(const float* x, int32_t group) {
  uint32_t largest = 0;
  for (int32_t i = 0; i < group; ++i)
    largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  const float absmax = std::bit_cast<float>(largest);
  if (absmax < kTinyGroup) return {0, 0};
  return {absmax / 127.0f, 127.0f / absmax};
}

}  // namespace

void quantise_rows(const float* x, int64_t x_stride, int32_t rows, int32_t columns, QuantRows out) {
  const int32_t groups = out.k / out.group;
  for (int32_t m = 0; m < rows; ++m) {
    for (int32_t g = 0; g < columns / out.group; ++g) {
      const float* values = x + m * x_stride + int64_t{g} * out.group;
      int8_t* q = out.q + int64_t{m} * out.k + int64_t{g} * out.group;
      const GroupScale s = group_scale(values, out.group);
      int32_t sum = 0;
      for (int32_t i = 0; i < out.group; ++i) {
        const float scaled = values[i] * s.inverse;
        const int32_t rounded =
            std::isfinite(s.scale) ? static_cast<int32_t>(std::nearbyint(scaled)) : 0;
        q[i / 8 * 8 + i % 2 * 4 + i % 8 / 2] = static_cast<int8_t>(rounded);
        sum += rounded;
      }
      out.scale[int64_t{m} * groups + g] = s.scale;
      out.sum[int64_t{m} * groups + g] = s.scale * static_cast<float>(sum);
    }
  }
}

void dequantise_row(const QuantMatrix& w, int32_t row, float* out) {
  const QuantRow weights(w, row);
  for (int32_t i = 0; i < w.k; ++i) {
    const int32_t g = i / w.group;
    out[i] = std::fma(weights.scale(g), static_cast<float>(weights.at(i)), weights.bias(g));
  }
}

void widen_row(const FloatMatrix& w, int32_t row, float* out) {
  for (int32_t i = 0; i < w.k; ++i) out[i] = widen_weight(w, row, i);
}

void widen_float8_row(const Float8Matrix& w, int32_t row, float* out) {
  const Float8Row weights(w, row);
  for (int32_t i = 0; i < w.k; ++i) out[i] = weights.number(i) * weights.scale(i);
}

}  // namespace weir::kernels::scalar
