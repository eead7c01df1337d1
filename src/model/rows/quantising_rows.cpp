#include "model/rows/quantising_rows.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "model/stored_matrix.h"

namespace weir::model {

QuantisingRows::QuantisingRows(std::shared_ptr<const RowSource> from, int32_t k, int32_t bits,
                               int32_t group, DType scale_type)
    : RowSource(std::to_string(bits) + "-bit g" + std::to_string(group),
                from->layout() + " " + dtype_name(scale_type),
                kernels::QuantShape{.k = k,
                                    .group = group,
                                    .bits = bits,
                                    .scales = kernels::ScaleForm::kPairs,
                                    .scale_type = float_type(scale_type)}),
      from_(std::move(from)),
      k_(k),
      bits_(bits),
      group_(group),
      scale_type_(scale_type) {}

void QuantisingRows::rows(const Bases& bases, int64_t first, int32_t count,
                          kernels::RowNumbers* out) const {
  std::vector<float> weights(static_cast<size_t>(k_) * static_cast<size_t>(count));
  from_->floats(bases, first, count, weights.data());
  const float* row = weights.data();
  for (int32_t i = 0; i < count; ++i, row += k_)
    for (int32_t g = 0; g < k_ / group_; ++g) {
      const QuantisedGroup made =
          quantise_group(row + g * group_, group_, bits_, out[i].codes + g * group_);
      kernels::put_number(shape()->scale_type, made.scale, out[i].scales, g);
      kernels::put_number(shape()->scale_type, made.bias, out[i].biases, g);
    }
}

// The edge, the extreme of the larger magnitude, becomes a number exactly: that is what the bias
// is, and the scale is such that 0 is one, too.
QuantisedGroup quantise_group(const float* weights, int32_t count, int32_t bits, uint8_t* codes) {
  constexpr float kScaleMin = 1e-7f;
  const auto most = static_cast<float>((1 << bits) - 1);
  const auto [least, greatest] = std::minmax_element(weights, weights + count);
  const bool low = std::fabs(*least) > std::fabs(*greatest);
  float scale = std::max((*greatest - *least) / most, kScaleMin);
  if (!low) scale = -scale;
  const float edge = low ? *least : *greatest;
  const float steps = std::rint(edge / scale);
  float bias = 0;
  if (steps != 0) {
    scale = edge / steps;
    bias = edge;
  }
  for (int32_t i = 0; i < count; ++i) {
    const float code = std::rint((weights[i] - bias) / scale);
    codes[i] = static_cast<uint8_t>(std::clamp(code, 0.0f, most));
  }
  return {scale, bias};
}

}  // namespace weir::model
