// Attention to codes of keys and values in AVX-512.
#include "kernels/simd/attend_coded.h"

#include "kernels/avx512/bytes.h"

namespace weir::kernels::avx512 {

void fill_coded_attention(CodedOps& ops) { ops.attend = simd::attend_coded<Vec, Bytes>; }

}  // namespace weir::kernels::avx512
