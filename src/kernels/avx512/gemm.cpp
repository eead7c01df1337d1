#include "kernels/avx512/gemm.h"

#include "kernels/isa.h"

namespace weir::kernels::avx512 {

void fill_gemm(Ops& ops) {
  ops.quantise_rows = quantise_rows;
  ops.gemm_quant_int8 = gemm_quant_int8;
  ops.gemm_quant_f32 = gemm_quant_f32;
  ops.gemm_float_f32 = gemm_float_f32;
  ops.gemm_float8_f32 = gemm_float8_f32;
  ops.add_low_rank = add_low_rank;
}

void fill_gemm_in_order(Ops& ops) { ops.gemm_float8_f32 = gemm_float8_f32_in_order; }

void fill_gemm_four_pipes(Ops& ops) { ops.gemm_quant_int8 = gemm_quant_int8_pairs; }

}  // namespace weir::kernels::avx512
