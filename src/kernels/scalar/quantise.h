// Entries of the table defined in quantise.cpp; see ops.h.
#pragma once

#include "kernels/ops.h"

namespace weir::kernels::scalar {

void quantise_rows(const float* x, int64_t x_stride, int32_t rows, int32_t columns, QuantRows out);
void dequantise_row(const QuantMatrix& w, int32_t row, float* out);
void widen_row(const FloatMatrix& w, int32_t row, float* out);
void widen_float8_row(const Float8Matrix& w, int32_t row, float* out);

}  // namespace weir::kernels::scalar
