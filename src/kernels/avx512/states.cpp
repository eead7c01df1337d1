// Kernels of states in AVX-512.
#include "kernels/simd/states.h"

#include "kernels/avx512/vec.h"
#include "kernels/isa.h"

namespace weir::kernels::avx512 {

void fill_states(Ops& ops) { simd::fill_states<Vec>(ops); }

}  // namespace weir::kernels::avx512
