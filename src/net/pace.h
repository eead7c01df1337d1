// Pace: how late a transfer is against a rate. Bytes that have come count as the time in which they
// would have come at that rate, so the transfer has been waited for since since_ms(). Time that it
// gained is not kept: a pause after a rush is as long as one without.
//
// Threads: its owner's; it holds no clock, times are given to it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::net {

class Pace {
 public:
  // Begins at `now_ms`, when `bytes` in all have been transferred already.
  void begin(uint64_t now_ms, uint64_t bytes) {
    since_ns_ = now_ms * kNsPerMs;
    bytes_ = bytes;
  }
  // `bytes` in all have been transferred by `now_ms`.
  void move(uint64_t now_ms, uint64_t bytes, uint64_t bytes_per_s) {
    if (bytes <= bytes_) return;
    const uint64_t earned_ns = (bytes - bytes_) * kNsPerS / bytes_per_s;
    since_ns_ = std::min(now_ms * kNsPerMs, since_ns_ + earned_ns);
    bytes_ = bytes;
  }
  uint64_t since_ms() const { return since_ns_ / kNsPerMs; }

 private:
  // Finer than milliseconds: a single byte counts, too.
  static constexpr uint64_t kNsPerMs = 1'000'000, kNsPerS = 1'000'000'000;

  uint64_t since_ns_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace weir::net
