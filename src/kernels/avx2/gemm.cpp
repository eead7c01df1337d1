#include "kernels/avx2/gemm.h"

#include "kernels/isa.h"

namespace weir::kernels::avx2 {

void fill_gemm(Ops& ops) {
  ops.quantise_rows = quantise_rows;
  ops.gemm_quant_int8 = gemm_quant_int8;
  ops.gemm_quant_f32 = gemm_quant_f32;
  ops.gemm_float_f32 = gemm_float_f32;
  ops.gemm_float8_f32 = gemm_float8_f32;
  ops.add_low_rank = add_low_rank;
  ops.dequantise_row = dequantise_row;
  ops.widen_row = widen_row;
  ops.widen_float8_row = widen_float8_row;
}

void fill_gemm_in_order(Ops& ops) {
  ops.gemm_quant_int8 = gemm_quant_int8_in_order;
  ops.gemm_float8_f32 = gemm_float8_f32_in_order;
}

}  // namespace weir::kernels::avx2
