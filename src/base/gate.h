// Gate: a count that moves on, and threads that wait until it does: they spin for a while, then
// sleep in the kernel.
//
// Never sched_yield(): it gives a whole time slice (4 ms) to any process that wants the core, and
// does not help the thread waited for, which stands in the other core's queue. A core that sleeps
// can pull it over. Once there, the two share a core, and spinning only keeps the other from
// working: each sleep halves the time that this thread spins next, each wait without one adds to
// it again.
//
// Threads: any may wait; moving on is for one at a time.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ring.h"

namespace weir {

class Gate {
 public:
  uint32_t count() const { return count_.load(std::memory_order_acquire); }

  // What was written before is visible to threads that have waited. Wakes the threads that sleep.
  // Does not allocate.
  void move_on();

  // Returns when the count is no longer `seen`.
  void wait(uint32_t seen);

 private:
  alignas(kCacheLineBytes) std::atomic<uint32_t> count_{0};  // It wraps: after some weeks.
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace weir
