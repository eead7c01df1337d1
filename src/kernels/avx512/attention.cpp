// Attention over KV pages in AVX-512.
#include "kernels/avx512/attention.h"

#include "kernels/avx512/vec.h"
#include "kernels/isa.h"
#include "kernels/simd/attention.h"

namespace weir::kernels::avx512 {

void attend(const KvPages& kv, const AttendArgs& args) { simd::attend<Vec>(kv, args); }

void fill_attention(Ops& ops) { simd::fill_attention<Vec>(ops); }

}  // namespace weir::kernels::avx512
