#include "model/rows/affine_rows.h"

#include <cstring>
#include <string>

#include "model/stored_matrix.h"

namespace weir::model {

AffineRows::AffineRows(int32_t k, int32_t bits, int32_t group, DType scale_type)
    : RowSource(std::to_string(bits) + "-bit g" + std::to_string(group), dtype_name(scale_type),
                kernels::QuantShape{.k = k,
                                    .group = group,
                                    .bits = bits,
                                    .scales = kernels::ScaleForm::kPairs,
                                    .scale_type = float_type(scale_type)}),
      k_(k),
      stream_{.bits = bits},
      group_(group),
      scale_type_(scale_type) {}

void AffineRows::rows(const Bases& bases, int64_t first, int32_t count,
                      kernels::RowNumbers* out) const {
  const int64_t of_row = k_ / group_ * dtype_bytes(scale_type_);
  for (int32_t i = 0; i < count; ++i) {
    const int64_t row = first + i;
    const std::byte* codes = bases[0] + row * stream_.words(k_) * 4;
    for (int32_t c = 0; c < k_; ++c) out[i].codes[c] = stream_.at(codes, c);
    std::memcpy(out[i].scales, bases[1] + row * of_row, static_cast<size_t>(of_row));
    std::memcpy(out[i].biases, bases[2] + row * of_row, static_cast<size_t>(of_row));
  }
}

}  // namespace weir::model
