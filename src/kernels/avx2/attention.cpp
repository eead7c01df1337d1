// Attention over KV pages in AVX2.
#include "kernels/simd/attention.h"

#include "kernels/avx2/vec.h"
#include "kernels/isa.h"

namespace weir::kernels::avx2 {

void fill_attention(Ops& ops) { simd::fill_attention<Vec>(ops); }

}  // namespace weir::kernels::avx2
