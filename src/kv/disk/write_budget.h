// WriteBudget: how much may be written: so many bytes a second, and so many in any day. Disks wear
// out by what is written to them, and what is written in the background shall leave others room.
//
// Threads: one.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace weir::kv::disk {

class WriteBudget {
 public:
  using Clock = std::chrono::steady_clock;

  // `written`: in the day before now.
  WriteBudget(int64_t bytes_a_second, int64_t bytes_a_day, int64_t written, Clock::time_point now);

  // So many bytes may still be written on this day.
  bool allows(int64_t bytes, Clock::time_point now);
  // They are written. Returns when the next ones may be.
  Clock::time_point spend(int64_t bytes, Clock::time_point now);

 private:
  void advance(Clock::time_point now);

  static constexpr int32_t kHours = 24;

  const int64_t bytes_a_second_;
  const int64_t bytes_a_day_;
  std::array<int64_t, kHours> hours_{};  // Written in each of the last hours; the newest first.
  Clock::time_point hour_;               // When the newest one began.
  Clock::time_point next_;
};

}  // namespace weir::kv::disk
