// Sleeping on a word in memory, and waking the threads that sleep there.
//
// Threads: any. Both may return without effect: a thread that waits looks again.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace weir {

// Sleeps while `word` is `value`, at most for `longest`.
inline void futex_wait(std::atomic<uint32_t>& word, uint32_t value,
                       std::chrono::nanoseconds longest = std::chrono::nanoseconds::max()) {
  static_assert(sizeof word == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(longest);
  const timespec timeout{.tv_sec = static_cast<time_t>(seconds.count()),
                         .tv_nsec = static_cast<long>((longest - seconds).count())};
  const bool bounded = longest != std::chrono::nanoseconds::max();
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value,
            bounded ? &timeout : nullptr, nullptr, 0);
}

// Wakes up to `threads` of those that sleep on `word`.
inline void futex_wake(std::atomic<uint32_t>& word, int threads) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, threads, nullptr,
            nullptr, 0);
}

}  // namespace weir
