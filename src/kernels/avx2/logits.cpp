// Kernels over logits in AVX2.
#include "kernels/simd/logits.h"

#include "kernels/avx2/vec.h"
#include "kernels/isa.h"

namespace weir::kernels::avx2 {

void fill_logits(Ops& ops) { simd::fill_logits<Vec>(ops); }

}  // namespace weir::kernels::avx2
