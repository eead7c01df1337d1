// Row-wise kernels in AVX2.
#include "kernels/simd/rows.h"

#include "kernels/avx2/vec.h"
#include "kernels/isa.h"

namespace weir::kernels::avx2 {

void fill_rows(Ops& ops) { simd::fill_rows<Vec>(ops); }

}  // namespace weir::kernels::avx2
