// Stage: where engines take turns with one team of compute threads, a step at a time. The next turn
// is that of the actor which has used the team's time least, of those that have work; while it
// computes, what the one before has computed is published. So engines that are busy share the time
// equally, however long their steps are, and none waits for another to publish its tokens. An actor
// that was idle does not make up for that: it begins where the others are.
//
// Threads: run() is the stage's thread, the team's leader. add(), remove() and stop() are called by
// any other; the bell is rung by any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/bell.h"
#include "base/progress.h"
#include "sched/actor.h"

namespace weir::sched {

class Stage {
 public:
  using Clock = Actor::Clock;

  // `now`: what turns are measured by; tests have another.
  explicit Stage(Clock::time_point (*now)() = &Clock::now) : clock_(now) {}

  // Wakes the stage; shared by all actors.
  Bell& bell() { return bell_; }

  // `actor` takes turns from now on.
  void add(Actor& actor);
  // Returns when `actor` takes no more turns: after a step at the most. It is the caller's then.
  // REQUIRES: it was added, and the stage runs, or has returned from run().
  void remove(Actor& actor);

  // Has actors take turns until stop(). Those that are left then are their owners' again.
  void run();
  void stop();

  // Moves on while run() does: with each turn, within a step, and when the bell has rung. Any
  // thread may look.
  const Progress& progress() const { return progress_; }

 private:
  struct Seat {
    Actor* actor = nullptr;
    Clock::duration used{};     // Of the team's time.
    bool rests = false;         // It had nothing to compute,
    uint32_t bell = 0;          // when the bell stood so,
    Clock::time_point wakes{};  // and wants another turn at this time.
  };

  void change_seats();
  Seat* choose(uint32_t bell, Clock::time_point now);
  void give_turn(Seat& seat, uint32_t bell, Clock::time_point begin);

  Clock::time_point (*const clock_)();
  Bell bell_;
  std::atomic<bool> stopping_{false};
  Progress progress_;
  std::vector<Seat> seats_;   // The stage's thread's.
  Clock::duration used_{};    // Of the actor that had the latest turn, when that began.
  Clock::time_point now_{};   // When the latest turn ended.
  Actor* waiting_ = nullptr;  // Has results to be published.

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> changes_{false};  // There is something in these:
  std::vector<Actor*> arriving_, leaving_;
  bool over_ = false;
};

}  // namespace weir::sched
