#include "model/rows/fp4_rows.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "model/rows/stored_numbers.h"

namespace weir::model {

Fp4Rows::Fp4Rows(int32_t k, int32_t group, kernels::ByteScale scales, Matrix matrix)
    : RowSource(std::string(scales == kernels::ByteScale::kE8m0 ? "MXFP4" : "NVFP4") + " g" +
                    std::to_string(group),
                std::to_string(static_cast<int>(matrix)),
                kernels::QuantShape{.k = k,
                                    .group = group,
                                    .bits = 4,
                                    .grid = kernels::Grid::kE2m1,
                                    .scales = kernels::ScaleForm::kTwoLevel,
                                    .byte_scale = scales}),
      k_(k),
      group_(group),
      matrix_(matrix) {}

void Fp4Rows::rows(const Bases& bases, int64_t first, int32_t count,
                   kernels::RowNumbers* out) const {
  // The grid has twice the numbers.
  float d = 0.5f;
  if (matrix_ == Matrix::kFactor) d *= load_float(DType::kF32, bases[2], 0);
  if (matrix_ == Matrix::kDivisor) d /= load_float(DType::kF32, bases[2], 0);
  const int32_t groups = k_ / group_;
  for (int32_t i = 0; i < count; ++i) {
    const std::byte* codes = bases[0] + (first + i) * (k_ / 2);
    for (int32_t c = 0; c < k_; c += 2) {
      const uint8_t two = load_u8(codes, c / 2);
      out[i].codes[c] = two & 15;
      out[i].codes[c + 1] = two >> 4;
    }
    std::memcpy(out[i].group_scales, bases[1] + (first + i) * groups, static_cast<size_t>(groups));
    std::fill_n(out[i].d, (k_ + kernels::kSuperGroup - 1) / kernels::kSuperGroup, d);
  }
}

}  // namespace weir::model
