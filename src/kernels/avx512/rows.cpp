// Row-wise kernels in AVX-512.
#include "kernels/simd/rows.h"

#include "kernels/avx512/vec.h"
#include "kernels/isa.h"

namespace weir::kernels::avx512 {

void fill_rows(Ops& ops) { simd::fill_rows<Vec>(ops); }

}  // namespace weir::kernels::avx512
