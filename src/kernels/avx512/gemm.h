// The products of this folder, for gemm.cpp and for the levels above. See ops.h.
#pragma once

#include "kernels/ops.h"
#include "kernels/simd/weight_fetch.h"

namespace weir::kernels::avx512 {

struct TileMemory;

void quantise_rows(const float* x, int64_t x_stride, int32_t rows, int32_t columns, QuantRows out);
void gemm_quant_int8(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                     void* scratch);
// The same of rows that lie side by side, for gemm_int8_pairs.cpp. REQUIRES: no index.
template <class Fetch>
void gemm_columns(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                  const TileMemory& memory);
extern template void gemm_columns<OrderedFetch>(const QuantMatrix&, const QuantRows&,
                                                const GemmRange&, const TileMemory&);
// gemm_quant_int8 with two blocks of columns at once, for processors with four vector pipes, which
// fetch in order.
void gemm_quant_int8_pairs(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                           void* scratch);
void gemm_quant_f32(const QuantMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                    void* scratch);
void gemm_float_f32(const FloatMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                    void* scratch);
void gemm_float8_f32(const Float8Matrix& w, const float* x, int64_t x_stride,
                     const GemmRange& range, void* scratch);
// gemm_float8_f32 for processors that fetch in order (simd/weight_fetch.h).
void gemm_float8_f32_in_order(const Float8Matrix& w, const float* x, int64_t x_stride,
                              const GemmRange& range, void* scratch);

void add_low_rank(const LowRank& b, const float* t, int64_t t_stride, const GemmRange& range);

}  // namespace weir::kernels::avx512
