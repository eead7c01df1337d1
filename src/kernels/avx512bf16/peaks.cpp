#include <immintrin.h>

#include "kernels/isa.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx512bf16 {
namespace {

constexpr int kChains = 12;  // Latency 6 times 2 a cycle.

int64_t bf16_loop(int64_t iterations) {
  __m512 sums[kChains];
  repeat<kChains>([&](auto i) WEIR_INLINE_LAMBDA { sums[i.value] = _mm512_setzero_ps(); });
  const __m512 a = _mm512_set1_ps(0.5f);
  for (int64_t n = 0; n < iterations; ++n)
    repeat<kChains>([&](auto i) WEIR_INLINE_LAMBDA {
      const __m512 halves = a;
      __m512& sum = sums[i.value];
      asm volatile("vdpbf16ps %1, %1, %0" : "+v"(sum) : "v"(halves));
    });
  return iterations * kChains * 32 * 2;
}

}  // namespace

void fill_peaks(PeakLoops& loops) { loops.bf16 = bf16_loop; }

}  // namespace weir::kernels::avx512bf16
