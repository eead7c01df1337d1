#include "base/bell.h"

#include "base/futex.h"

namespace weir {

// Sequentially consistent with sleep(): either we see that the owner sleeps, or it sees that the
// bell has rung.
void Bell::ring() {
  count_.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.load(std::memory_order_seq_cst)) futex_wake(count_, 1);
}

void Bell::sleep(uint32_t seen, Clock::time_point end) {
  sleeping_.store(true, std::memory_order_seq_cst);
  while (count() == seen) {
    if (end == Clock::time_point::max()) {
      futex_wait(count_, seen);
      continue;
    }
    const Clock::time_point now = Clock::now();
    if (end <= now) break;
    futex_wait(count_, seen, end - now);
  }
  sleeping_.store(false, std::memory_order_relaxed);
}

}  // namespace weir
