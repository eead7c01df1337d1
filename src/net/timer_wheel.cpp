// A hashed timer wheel with lazy re-arming.
#include "net/timer_wheel.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace weir::net {

void TimerWheel::arm(WheelTimer& timer, uint64_t deadline_ms) {
  timer.deadline_ms = deadline_ms;
  if (timer.tick != 0) {
    if (timer.tick * kTickMs <= deadline_ms) return;  // Placed again when its slot comes.
    unlink(timer);
  }
  place(timer);
}

void TimerWheel::disarm(WheelTimer& timer) {
  if (timer.tick != 0) unlink(timer);
}

void TimerWheel::place(WheelTimer& timer) {
  const uint64_t due = (timer.deadline_ms + kTickMs - 1) / kTickMs;
  timer.tick = std::clamp(due, current_tick_ + 1, current_tick_ + kSlots - 1);
  const uint64_t slot = timer.tick % kSlots;
  timer.previous = nullptr;
  timer.next = slots_[slot];
  if (timer.next != nullptr) timer.next->previous = &timer;
  slots_[slot] = &timer;
  occupied_[slot / 64] |= uint64_t{1} << (slot % 64);
}

void TimerWheel::unlink(WheelTimer& timer) {
  const uint64_t slot = timer.tick % kSlots;
  (timer.previous != nullptr ? timer.previous->next : slots_[slot]) = timer.next;
  if (timer.next != nullptr) timer.next->previous = timer.previous;
  if (slots_[slot] == nullptr) occupied_[slot / 64] &= ~(uint64_t{1} << (slot % 64));
  timer.tick = 0;
  timer.previous = timer.next = nullptr;
}

void TimerWheel::advance(uint64_t now_ms, const std::function<void(WheelTimer&)>& expired) {
  const uint64_t now_tick = now_ms / kTickMs;
  // After a long sleep one turn sees every slot.
  if (now_tick > current_tick_ + kSlots) current_tick_ = now_tick - kSlots;
  while (current_tick_ < now_tick) {
    const uint64_t slot = ++current_tick_ % kSlots;
    while (slots_[slot] != nullptr) {  // Ends: place() never chooses the slot of current_tick_.
      WheelTimer& timer = *slots_[slot];
      unlink(timer);
      if (timer.deadline_ms > now_ms) {
        place(timer);
      } else {
        expired(timer);
      }
    }
  }
}

std::optional<uint64_t> TimerWheel::next_ms() const {
  uint64_t tick = current_tick_ + 1;
  const uint64_t end = current_tick_ + kSlots;
  while (tick < end) {
    const uint64_t slot = tick % kSlots;
    const uint64_t word = occupied_[slot / 64] >> (slot % 64);
    if (word != 0) return (tick + static_cast<uint64_t>(std::countr_zero(word))) * kTickMs;
    tick += 64 - slot % 64;
  }
  return std::nullopt;
}

void TimerWheel::check() const {
  for (uint64_t slot = 0; slot < kSlots; ++slot) {
    CHECK((slots_[slot] != nullptr) == ((occupied_[slot / 64] >> (slot % 64) & 1) != 0));
    const WheelTimer* previous = nullptr;
    for (const WheelTimer* t = slots_[slot]; t != nullptr; previous = t, t = t->next) {
      CHECK(t->tick % kSlots == slot && t->previous == previous);
      CHECK(t->tick > current_tick_ && t->tick < current_tick_ + kSlots);
      CHECK(t->tick * kTickMs < t->deadline_ms + kTickMs || t->tick == current_tick_ + 1);
    }
  }
}

}  // namespace weir::net
