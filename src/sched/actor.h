// Actor: what takes turns on a Stage with the team of compute threads: an engine, whose turn is a
// step, or weights that are put into their place, whose turn is a slice of them.
//
// Threads: the stage's, while it is on the stage.
#pragma once

#include <chrono>

namespace weir::sched {

class Actor {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Actor() = default;

  // Takes a turn; false if there was nothing to compute, and nothing is expected before the bell
  // rings. `waiting`: the actor that computed before and has results to be published, or null; one
  // that computes has them published meanwhile, and sets it to null.
  virtual bool take_turn(Actor*& waiting) = 0;
  // Publishes what its last turn has computed: another takes a turn before its next.
  virtual void publish_turn() {}
  // There was nothing to compute. Returns when it wants another turn all the same.
  virtual Clock::time_point begin_rest() { return Clock::time_point::max(); }
};

}  // namespace weir::sched
