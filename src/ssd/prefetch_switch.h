// PrefetchSwitch decides whether a source of guesses is worth its reads, by what happened: the
// reads it asked for came true or did not, and steps were faster with it or without.
//
// A source whose reads that come true do not pay for the others is off. Where that is no clear
// case, because the disk is busy or many reads are in vain, the clock decides: now and then the
// source is switched over for a few steps. Trials are short and grow rare while they confirm what
// is.
//
// Threads: owned by the engine's leader.
#pragma once

#include <cstdint>

namespace weir::ssd {

class PrefetchSwitch {
 public:
  // What a read in vain costs when the disk is busy, in reads: its own time, and in the end that of
  // reading again what it evicted. Prefetcher's threshold is made of the same.
  static constexpr float kPriceInVain = 2;

  bool on() const { return on_ != trying_; }
  bool trying() const { return trying_; }

  // A read that the source asked for: whether its layer's next visit used it.
  void settle(bool came_true);
  // A step without prompt rows is over. may_try: no other source is being tried.
  // REQUIRES: tokens > 0.
  void step(double seconds, int32_t tokens, float busy_share, bool may_try);

 private:
  // The mean and variance of the latest of a series; old ones fade.
  struct Pace {
    double mean = 0;
    double variance = 0;
    double steps = 0;  // That count; at most the window.
    void add(double value, double window);
    double error() const { return steps > 1 ? variance / steps : variance; }  // Squared.
  };

  bool in_doubt(float busy_share) const;
  void end_trial();
  void turn(bool on);

  bool on_ = true;
  bool trying_ = false;
  int32_t phase_steps_ = 0;  // Since the phase, trial or not, began.
  int32_t interval_ = 32;    // Steps before the next trial.
  int32_t tokens_ = 0;       // Per step, in this phase.
  Pace usual_;               // Seconds per token, as it is.
  Pace other_;               // Switched over, in this trial.
  Pace gains_;               // Of trials: how much faster they were.
  float saved_ = 0;          // Reads that came true, and those that did not; both fade.
  float spent_ = 0;
};

}  // namespace weir::ssd
