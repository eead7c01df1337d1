// gemm_float8_f32 in AVX-512.
#include "kernels/simd/gemm_float8.h"

#include "kernels/avx512/gemm.h"
#include "kernels/avx512/vec.h"

namespace weir::kernels::avx512 {

void gemm_float8_f32(const Float8Matrix& w, const float* x, int64_t x_stride,
                     const GemmRange& range, void* scratch) {
  simd::gemm_float8_f32<Vec, PageFetch>(w, x, x_stride, range, scratch);
}

void gemm_float8_f32_in_order(const Float8Matrix& w, const float* x, int64_t x_stride,
                              const GemmRange& range, void* scratch) {
  simd::gemm_float8_f32<Vec, OrderedFetch>(w, x, x_stride, range, scratch);
}

}  // namespace weir::kernels::avx512
