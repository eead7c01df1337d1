// Attention to codes of keys and values in AVX2.
#include "kernels/simd/attend_coded.h"

#include "kernels/avx2/bytes.h"

namespace weir::kernels::avx2 {

void fill_coded_attention(CodedOps& ops) { ops.attend = simd::attend_coded<Vec, Bytes>; }

}  // namespace weir::kernels::avx2
