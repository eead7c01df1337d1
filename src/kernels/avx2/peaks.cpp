#include <immintrin.h>

#include "kernels/isa.h"
#include "kernels/simd/weight_fetch.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx2 {
namespace {

constexpr int kChains = 10;  // Latency 4 or 5 times 2 a cycle.

// Without VNNI an int8 product is vpmaddubsw into 16 bits and an addition there; widening to 32
// bits is rare enough to leave out.
int64_t int8_loop(int64_t iterations) {
  __m256i sums[kChains];
  repeat<kChains>([&](auto i) WEIR_INLINE_LAMBDA { sums[i.value] = _mm256_setzero_si256(); });
  const __m256i a = _mm256_set1_epi8(1);
  for (int64_t n = 0; n < iterations; ++n)
    repeat<kChains>([&](auto i) WEIR_INLINE_LAMBDA {
      __m256i products = a;
      __m256i& sum = sums[i.value];
      asm volatile("vpmaddubsw %0, %0, %0" : "+x"(products));
      asm volatile("vpaddw %1, %0, %0" : "+x"(sum) : "x"(products));
    });
  return iterations * kChains * 32 * 2;
}

int64_t f32_loop(int64_t iterations) {
  __m256 sums[kChains];
  repeat<kChains>([&](auto i) WEIR_INLINE_LAMBDA { sums[i.value] = _mm256_setzero_ps(); });
  const __m256 a = _mm256_set1_ps(0.5f);
  for (int64_t n = 0; n < iterations; ++n)
    repeat<kChains>([&](auto i) WEIR_INLINE_LAMBDA {
      const __m256 halves = a;
      __m256& sum = sums[i.value];
      asm volatile("vfmadd231ps %1, %1, %0" : "+x"(sum) : "x"(halves));
    });
  return iterations * kChains * 8 * 2;
}

uint64_t read(const void* data, int64_t bytes) {
  __m256i sums[8];
  repeat<8>([&](auto i) WEIR_INLINE_LAMBDA { sums[i.value] = _mm256_setzero_si256(); });
  read_fetched(static_cast<const uint8_t*>(data), bytes, [&](const uint8_t* at) WEIR_INLINE_LAMBDA {
    repeat<8>([&](auto i) WEIR_INLINE_LAMBDA {
      const auto* line = reinterpret_cast<const __m256i*>(at + 32 * i.value);
      sums[i.value] = _mm256_add_epi64(sums[i.value], _mm256_load_si256(line));
    });
  });
  repeat<4>([&](auto i) WEIR_INLINE_LAMBDA {
    sums[i.value] = _mm256_add_epi64(sums[i.value], sums[i.value + 4]);
  });
  const __m256i sum =
      _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
  return static_cast<uint64_t>(_mm256_extract_epi64(sum, 0)) +
         static_cast<uint64_t>(_mm256_extract_epi64(sum, 1)) +
         static_cast<uint64_t>(_mm256_extract_epi64(sum, 2)) +
         static_cast<uint64_t>(_mm256_extract_epi64(sum, 3));
}

}  // namespace

void fill_peaks(PeakLoops& loops) {
  loops.int8 = int8_loop;
  loops.f32 = f32_loop;
  loops.read = read;
}

}  // namespace weir::kernels::avx2
