// Kernels of states in AVX2.
#include "kernels/simd/states.h"

#include "kernels/avx2/vec.h"
#include "kernels/isa.h"

namespace weir::kernels::avx2 {

void fill_states(Ops& ops) { simd::fill_states<Vec>(ops); }

}  // namespace weir::kernels::avx2
