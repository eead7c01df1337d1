// Rotations and codes of keys and values in AVX2.
#include "kernels/avx2/bytes.h"
#include "kernels/simd/encode_page.h"
#include "kernels/simd/rotate.h"

namespace weir::kernels::avx2 {

void fill_coded(CodedOps& ops) {
  ops.rotate = simd::rotate<Vec, Bytes>;
  ops.encode_page = simd::encode_page<Vec, Bytes>;
}

}  // namespace weir::kernels::avx2
