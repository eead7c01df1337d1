// The outer half of low-rank products in AVX2.
#include "kernels/simd/low_rank.h"

#include "kernels/avx2/gemm.h"
#include "kernels/avx2/vec.h"

namespace weir::kernels::avx2 {

void add_low_rank(const LowRank& b, const float* t, int64_t t_stride, const GemmRange& range) {
  simd::add_low_rank<Vec>(b, t, t_stride, range);
}

}  // namespace weir::kernels::avx2
