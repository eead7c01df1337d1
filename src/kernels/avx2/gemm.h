// The products of this folder, for gemm.cpp. See ops.h.
#pragma once

#include "kernels/ops.h"

namespace weir::kernels::avx2 {

void quantise_rows(const float* x, int64_t x_stride, int32_t rows, int32_t columns, QuantRows out);
void dequantise_row(const QuantMatrix& w, int32_t row, float* out);
void widen_row(const FloatMatrix& w, int32_t row, float* out);
void widen_float8_row(const Float8Matrix& w, int32_t row, float* out);
void gemm_quant_int8(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                     void* scratch);
// gemm_quant_int8 for processors that fetch in order (simd/weight_fetch.h).
void gemm_quant_int8_in_order(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                              void* scratch);
void gemm_quant_f32(const QuantMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                    void* scratch);
void gemm_float_f32(const FloatMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                    void* scratch);
void gemm_float8_f32(const Float8Matrix& w, const float* x, int64_t x_stride,
                     const GemmRange& range, void* scratch);
// gemm_float8_f32 for processors that fetch in order.
void gemm_float8_f32_in_order(const Float8Matrix& w, const float* x, int64_t x_stride,
                              const GemmRange& range, void* scratch);

void add_low_rank(const LowRank& b, const float* t, int64_t t_stride, const GemmRange& range);

}  // namespace weir::kernels::avx2
