// Baseline x86-64: the compiler's SSE2 code for plain loops.
#include "kernels/isa.h"

namespace weir::kernels::scalar {
namespace {

constexpr int kLanes = 16;  // Independent chains: latency 4 times 2 a cycle, times a margin of 2.

int64_t int8_loop(int64_t iterations) {
  int32_t sums[kLanes] = {};
  int32_t a = 3, b = 5;
  for (int64_t i = 0; i < iterations; ++i) {
    asm volatile("" : "+r"(a), "+r"(b));
    for (int32_t& sum : sums)
      sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(a * b));
    asm volatile("" : : "r"(sums) : "memory");
  }
  return iterations * kLanes * 2;
}

int64_t f32_loop(int64_t iterations) {
  float sums[kLanes] = {};
  float a = 1.0f, b = 0.5f;
  for (int64_t i = 0; i < iterations; ++i) {
    asm volatile("" : "+x"(a), "+x"(b));
    for (float& sum : sums) sum = sum * b + a;
    asm volatile("" : : "r"(sums) : "memory");
  }
  return iterations * kLanes * 2;
}

uint64_t read(const void* data, int64_t bytes) {
  const uint64_t* words = static_cast<const uint64_t*>(data);
  uint64_t a = 0, b = 0, c = 0, d = 0;
  for (int64_t i = 0; i < bytes / 8; i += 4) {
    a += words[i];
    b += words[i + 1];
    c += words[i + 2];
    d += words[i + 3];
  }
  return a + b + c + d;
}

}  // namespace

void fill_peaks(PeakLoops& loops) {
  loops.int8 = int8_loop;
  loops.f32 = f32_loop;
  loops.read = read;
}

}  // namespace weir::kernels::scalar
