#include <immintrin.h>

#include "kernels/isa.h"
#include "kernels/simd/weight_fetch.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx512 {
namespace {

// Independent chains: latency 5 (Intel's vpdpbusd) times 2 a cycle, rounded up.
constexpr int kChains = 12;

int64_t int8_loop(int64_t iterations) {
  __m512i sums[kChains];
  repeat<kChains>([&](auto i) WEIR_INLINE_LAMBDA { sums[i.value] = _mm512_setzero_si512(); });
  const __m512i a = _mm512_set1_epi8(1);
  for (int64_t n = 0; n < iterations; ++n)
    repeat<kChains>([&](auto i) WEIR_INLINE_LAMBDA {
      const __m512i ones = a;
      __m512i& sum = sums[i.value];
      asm volatile("vpdpbusd %1, %1, %0" : "+v"(sum) : "v"(ones));
    });
  return iterations * kChains * 64 * 2;
}

int64_t f32_loop(int64_t iterations) {
  __m512 sums[kChains];
  repeat<kChains>([&](auto i) WEIR_INLINE_LAMBDA { sums[i.value] = _mm512_setzero_ps(); });
  const __m512 a = _mm512_set1_ps(0.5f);
  for (int64_t n = 0; n < iterations; ++n)
    repeat<kChains>([&](auto i) WEIR_INLINE_LAMBDA {
      const __m512 halves = a;
      __m512& sum = sums[i.value];
      asm volatile("vfmadd231ps %1, %1, %0" : "+v"(sum) : "v"(halves));
    });
  return iterations * kChains * 16 * 2;
}

uint64_t read(const void* data, int64_t bytes) {
  __m512i sums[4];
  repeat<4>([&](auto i) WEIR_INLINE_LAMBDA { sums[i.value] = _mm512_setzero_si512(); });
  read_fetched(static_cast<const uint8_t*>(data), bytes, [&](const uint8_t* at) WEIR_INLINE_LAMBDA {
    repeat<4>([&](auto i) WEIR_INLINE_LAMBDA {
      sums[i.value] = _mm512_add_epi64(sums[i.value], _mm512_load_si512(at + 64 * i.value));
    });
  });
  // Not _mm512_reduce_add_epi64: its last additions are signed, and overflow.
  alignas(64) uint64_t lanes[8];
  _mm512_store_si512(lanes, _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]),
                                             _mm512_add_epi64(sums[2], sums[3])));
  uint64_t sum = 0;
  for (const uint64_t lane : lanes) sum += lane;
  return sum;
}

}  // namespace

void fill_peaks(PeakLoops& loops) {
  loops.int8 = int8_loop;
  loops.f32 = f32_loop;
  loops.read = read;
}

}  // namespace weir::kernels::avx512
