// The outer half of low-rank products in AVX-512.
#include "kernels/simd/low_rank.h"

#include "kernels/avx512/gemm.h"
#include "kernels/avx512/vec.h"

namespace weir::kernels::avx512 {

void add_low_rank(const LowRank& b, const float* t, int64_t t_stride, const GemmRange& range) {
  simd::add_low_rank<Vec>(b, t, t_stride, range);
}

}  // namespace weir::kernels::avx512
