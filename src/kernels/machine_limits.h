// What this machine can do at most: read bandwidth and arithmetic peaks, measured by loops that do
// nothing else. `weir bench` and kernels_bench print every rate as a share of these.
//
// Threads: measure_limits starts its own threads and waits for them; call it while nothing else
// runs. It takes half a second, and read_bytes() of memory while it runs.
#pragma once

#include "base/result.h"
#include "kernels/ops.h"

namespace weir::kernels {

// Sums over the threads. Each thread counts its own processor time, so that a neighbour on the
// same core does not lower the figure; bandwidth that a neighbour takes does.
struct MachineLimits {
  double read_gb_s = 0;        // From memory, the best that a loop gets; 10^9 bytes a second.
  double plain_read_gb_s = 0;  // By a plain loop, one stream a thread.
  double int8_tops = 0;        // int8 multiply-adds from registers (AMX tiles on kAmx), times two.
  double f32_tflops = 0;       // float32 fused multiply-adds from registers, times two.
  double bf16_tflops = 0;      // bf16 tiles, times two; 0 where prompts are not computed in bf16.
};

// What the threads together read: four times the last-level caches, at least 256 MiB.
int64_t read_bytes();

// An error if there is not so much memory. REQUIRES: isa_available(isa), threads >= 1.
Result<MachineLimits> measure_limits(Isa isa, int threads);

}  // namespace weir::kernels
