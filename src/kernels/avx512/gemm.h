// The products of this folder, for gemm.cpp and for the levels above. See ops.h.
#pragma once

#include "kernels/ops.h"

namespace weir::kernels::avx512 {

void quantise_rows(const float* x, int64_t x_stride, int32_t rows, int32_t columns, QuantRows out);
void gemm_quant_int8(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                     void* scratch);
void gemm_quant_f32(const QuantMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                    void* scratch);
void gemm_float_f32(const FloatMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                    void* scratch);

}  // namespace weir::kernels::avx512
