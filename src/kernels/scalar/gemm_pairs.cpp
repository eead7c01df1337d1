// What products of pairs mean: one output at a time, in the order that pair_ops.h fixes.
#include <bit>
#include <cmath>
#include <initializer_list>

#include "kernels/pair_ops.h"
#include "kernels/scalar/widen.h"

namespace weir::kernels::scalar {
namespace {

uint16_t round_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40);
  if ((bits & 0x7f800000u) == 0) return static_cast<uint16_t>(bits >> 16 & 0x8000u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

void round(const float* x, int64_t x_stride, int32_t rows, PairRows out) {
  for (int32_t m = 0; m < rows; ++m)
    for (int32_t i = 0; i < pair_stride(out.k); ++i)
      out.x[m * out.stride + i] = i < out.k ? round_to_bf16(x[m * x_stride + i]) : uint16_t{0};
}

void gemm(const FloatMatrix& w, const PairRows& x, const GemmRange& range, void*) {
  const auto weight = [&](int32_t row, int32_t i) {
    const float wide = widen_weight(w, row, i);
    return w.type == FloatType::kBF16 ? wide : bf16_to_float(round_to_bf16(wide));
  };
  for (int32_t m = 0; m < range.rows; ++m) {
    const uint16_t* row = x.x + (range.index != nullptr ? range.index[m] : m) * x.stride;
    for (int32_t column = range.begin; column < range.end; ++column) {
      float sum = 0;
      for (int32_t i = 0; i < w.k; i += 2)
        for (const int32_t at : {i + 1, i})
          if (at < w.k) sum = std::fma(weight(column, at), bf16_to_float(row[at]), sum);
      range.y[m * range.y_stride + column] = sum;
    }
  }
}

}  // namespace

void fill_pairs(PairOps& ops) {
  ops.fast = false;
  ops.round = round;
  ops.gemm = gemm;
}

}  // namespace weir::kernels::scalar
