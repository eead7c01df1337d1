// EncodePace: how much of media is computed between two steps. What is given is time; what an
// encoder is asked for is work, in multiply-adds, of which it has computed so many a second lately.
//
// Threads: owned by the engine thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace weir::sched {

class EncodePace {
 public:
  // How long to encode while nothing else is computed, where steps are to take at most `limit`
  // (--max-step-ms; 0: there is none). Teams lose little at the ends of such units (a claim of a
  // tower of 400 million weights takes one or two milliseconds), and a request that comes meanwhile
  // waits no longer than for a prompt's chunk.
  static double seconds_alone(double limit) {
    constexpr double kAlone = 0.05;
    return limit <= 0 ? kAlone : std::min(kAlone, limit);
  }
  // The same after a step that has taken `step` seconds: as long as that, so that either has half of
  // the time, but within what the limit leaves, or a quarter of it, for media must get on.
  static double seconds_beside(double step, double limit) {
    return limit <= 0 ? step : std::min(step, std::max(limit - step, limit / 4));
  }

  // Work of the next unit, where `left` of `given` seconds are left: for at most a quarter of them,
  // because parts of a tower differ in what they take for their work; 0: no unit fits any more.
  int64_t next_unit(double given, double left) const {
    if (left < given / 8) return 0;
    return std::max(kWorkLeast, static_cast<int64_t>(rate_ * std::min(left, given / 4)));
  }
  void learn(int64_t work, double seconds) {
    if (work <= 0 || seconds <= 0) return;
    const double rate = static_cast<double>(work) / seconds;
    rate_ = rate_ == 0 ? rate : (rate_ + rate) / 2;
  }

 private:
  // An encoder rounds up to its smallest part.
  static constexpr int64_t kWorkLeast = 1;

  double rate_ = 0;  // Multiply-adds a second.
};

}  // namespace weir::sched
