// Rotations and codes of keys and values in AVX-512.
#include "kernels/avx512/attention.h"
#include "kernels/avx512/bytes.h"
#include "kernels/simd/encode_page.h"
#include "kernels/simd/rotate.h"

namespace weir::kernels::avx512 {

void rotate(const Rotation& rotation, bool back, int32_t heads, float* x) {
  simd::rotate<Vec, Bytes>(rotation, back, heads, x);
}

void fill_coded(CodedOps& ops) {
  ops.rotate = rotate;
  ops.encode_page = simd::encode_page<Vec, Bytes>;
}

}  // namespace weir::kernels::avx512
