#include "sched/stage.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/trace.h"

namespace weir::sched {

void Stage::add(Actor& actor) {
  {
    const std::lock_guard lock(mutex_);
    arriving_.push_back(&actor);
    changes_.store(true, std::memory_order_release);
  }
  bell_.ring();
}

void Stage::remove(Actor& actor) {
  std::unique_lock lock(mutex_);
  if (over_) return;
  leaving_.push_back(&actor);
  changes_.store(true, std::memory_order_release);
  bell_.ring();
  changed_.wait(lock, [&] { return std::ranges::find(leaving_, &actor) == leaving_.end(); });
}

void Stage::stop() {
  stopping_.store(true, std::memory_order_release);
  bell_.ring();
}

void Stage::run() {
  const Progress::Scope progress(progress_);
  now_ = clock_();
  while (true) {
    // Before we look at anything: whatever happens after our look changes the bell.
    const uint32_t bell = bell_.count();
    progress_.move_on();
    if (stopping_.load(std::memory_order_acquire)) break;
    if (changes_.load(std::memory_order_acquire)) change_seats();
    if (Seat* next = choose(bell, now_)) {
      give_turn(*next, bell, now_);
      continue;
    }
    Clock::time_point wakes = Clock::time_point::max();
    for (const Seat& seat : seats_) wakes = std::min(wakes, seat.wakes);
    {
      const trace::Scope scope(trace::Kind::kWait, "sleep");
      bell_.sleep(bell, wakes);
    }
    now_ = clock_();
  }
  const std::lock_guard lock(mutex_);
  over_ = true;
  leaving_.clear();
  changed_.notify_all();
}

void Stage::change_seats() {
  const std::lock_guard lock(mutex_);
  for (Actor* actor : std::exchange(arriving_, {}))
    seats_.push_back({.actor = actor, .used = used_});
  for (Actor* actor : std::exchange(leaving_, {})) {
    if (waiting_ == actor) waiting_ = nullptr;
    CHECK(std::erase_if(seats_, [&](const Seat& seat) { return seat.actor == actor; }) == 1);
  }
  changes_.store(false, std::memory_order_relaxed);
  changed_.notify_all();
}

// Of those that do not rest, the one that has used the least; the first of equals.
Stage::Seat* Stage::choose(uint32_t bell, Clock::time_point now) {
  Seat* best = nullptr;
  for (Seat& seat : seats_) {
    if (seat.rests) {
      if (seat.bell == bell && now < seat.wakes) continue;
      seat.rests = false;
      seat.used = std::max(seat.used, used_);
    }
    if (best == nullptr || seat.used < best->used) best = &seat;
  }
  return best;
}

void Stage::give_turn(Seat& seat, uint32_t bell, Clock::time_point begin) {
  used_ = seat.used;
  if (waiting_ == seat.actor) waiting_ = nullptr;
  const bool works = seat.actor->take_turn(waiting_);
  if (works && waiting_ == nullptr) waiting_ = seat.actor;
  if (!works) {
    seat.rests = true;
    seat.bell = bell;
    seat.wakes = seat.actor->begin_rest();
  }
  now_ = clock_();
  seat.used += now_ - begin;
}

}  // namespace weir::sched
