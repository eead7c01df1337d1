// Bell: wakes the one thread that sleeps on it, which looks for work after each ring and may want
// to be up at a certain time anyway.
//
// Threads: any thread rings; one, the owner, sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace weir {

class Bell {
 public:
  using Clock = std::chrono::steady_clock;

  // How often it has rung. The owner asks before it looks for work: whatever comes after its look
  // changes the count.
  uint32_t count() const { return count_.load(std::memory_order_seq_cst); }

  // What was written before is visible to the owner once it has woken. Does not block.
  void ring();

  // The owner: returns when the count is no longer `seen`, or at `end`.
  void sleep(uint32_t seen, Clock::time_point end);

 private:
  std::atomic<uint32_t> count_{0};  // Futex word. It wraps.
  std::atomic<bool> sleeping_{false};
};

}  // namespace weir
