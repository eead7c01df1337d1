#include "base/gate.h"

#include <algorithm>
#include <chrono>
#include <climits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/futex.h"

namespace weir {

namespace {

using Clock = std::chrono::steady_clock;

// A wake costs 11-23 us, more if the core has been halted: sleeping sooner would slow a decode
// step, whose phases take 5 to 2,000 us.
constexpr Clock::duration kSpinMax = std::chrono::microseconds(50);
// As long as a line takes to travel between cores, a few times over.
constexpr Clock::duration kSpinMin = std::chrono::microseconds(2);
// What a wait that needed no sleep adds: from least to most in a quarter of a step of 30 layers.
constexpr Clock::duration kSpinRise = std::chrono::microseconds(1);
// Between two looks at the clock, which costs as much as about one pause.
constexpr int kPausesPerLook = 16;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

// Sequentially consistent with wait(): either we see the sleeper or it sees the new count.
void Gate::move_on() {
  count_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake(count_, INT_MAX);
}

void Gate::wait(uint32_t seen) {
  static thread_local constinit Clock::duration spin_time = kSpinMax;
  const Clock::time_point begin = Clock::now();
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (count() != seen) {
        spin_time = std::min(kSpinMax, spin_time + kSpinRise);
        return;
      }
      relax();
    }
  } while (Clock::now() - begin < spin_time);
  spin_time = std::max(kSpinMin, spin_time / 2);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (count_.load(std::memory_order_seq_cst) == seen) futex_wait(count_, seen);
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace weir
