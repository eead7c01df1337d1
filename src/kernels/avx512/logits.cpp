// Kernels over logits in AVX-512.
#include "kernels/simd/logits.h"

#include "kernels/avx512/vec.h"
#include "kernels/isa.h"

namespace weir::kernels::avx512 {

void fill_logits(Ops& ops) { simd::fill_logits<Vec>(ops); }

}  // namespace weir::kernels::avx512
