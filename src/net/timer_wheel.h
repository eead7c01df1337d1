// TimerWheel keeps many coarse deadlines (one per connection) for the price of one uv timer.
//
// Threads: its owner's; it holds no clock, times are given to it.
//
// Invariants:
// (1) A linked timer lies in slot `tick % kSlots`, and current_tick_ < tick < current_tick_ +
// kSlots. (2) tick * kTickMs is at most one tick after the deadline; it may lie before it (a
// deadline that was
//     moved later, or one beyond the wheel's span): such a timer is placed again when its slot
//     comes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

namespace weir::net {

// One deadline; a member of what it is the deadline of.
struct WheelTimer {
  uint64_t deadline_ms = 0;
  uint64_t tick = 0;  // Where it lies in the wheel; 0: nowhere.
  WheelTimer* previous = nullptr;
  WheelTimer* next = nullptr;
  void* owner = nullptr;
};

class TimerWheel {
 public:
  // Deadlines of a server are seconds; a test's are tens of milliseconds.
  static constexpr uint64_t kTickMs = 16;
  // 16 s in one turn: an idle connection (120 s) is looked at eight times before it is closed.
  static constexpr uint64_t kSlots = 1024;

  explicit TimerWheel(uint64_t now_ms) : current_tick_(now_ms / kTickMs) {}
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  // (Re-)arms. Moving a deadline later costs one store.
  void arm(WheelTimer& timer, uint64_t deadline_ms);
  void disarm(WheelTimer& timer);

  // Disarms each timer whose deadline has passed and calls `expired` for it, which may arm and
  // disarm any timer.
  void advance(uint64_t now_ms, const std::function<void(WheelTimer&)>& expired);

  // When advance() has something to look at; nothing while no timer is armed.
  std::optional<uint64_t> next_ms() const;

  // Walks everything and CHECKs the invariants.
  void check() const;

 private:
  void place(WheelTimer& timer);
  void unlink(WheelTimer& timer);

  uint64_t current_tick_;
  std::array<WheelTimer*, kSlots> slots_{};
  std::array<uint64_t, kSlots / 64> occupied_{};  // A bit per slot.
};

}  // namespace weir::net
