// Attention over KV pages in AVX-512.
#include "kernels/simd/attention.h"

#include "kernels/avx512/vec.h"
#include "kernels/isa.h"

namespace weir::kernels::avx512 {

void fill_attention(Ops& ops) { simd::fill_attention<Vec>(ops); }

}  // namespace weir::kernels::avx512
