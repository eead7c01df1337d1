// Trials and their evaluation.
#include "ssd/prefetch_switch.h"

#include <algorithm>

#include "base/check.h"

namespace weir::ssd {
namespace {

// Trials: 8 steps, the first of which still has the other way's reads under way, each against the
// steps just before it, because pace drifts with topics and lengths. Four of them 32 steps apart
// give an opinion, then the distance doubles as long as they change nothing.
constexpr int32_t kTrialSteps = 8;
constexpr int32_t kSkippedSteps = 1;
constexpr int32_t kTrialsFirst = 4;
constexpr int32_t kIntervalFirst = 32;
constexpr int32_t kIntervalLast = 4096;
constexpr double kUsualWindow = 16;  // Steps before a trial that it is compared with.
constexpr double kTrialsMin = 3;     // Before their spread says anything.
constexpr double kTrialsWindow = 4;  // What was long ago says little.
// A source that is off comes on when it is this much faster, and not by chance.
constexpr double kGainMin = 0.01;
// A difference of 2.5 times its error is chance in one case of eighty.
constexpr double kCertain = 2.5 * 2.5;
constexpr double kObvious = 4.0 * 4.0;  // So that one trial is enough.
// Reads: before there is an opinion, and where it fades by half.
constexpr float kReadsMin = 32;
constexpr float kReadsMax = 512;
// Without doubt: the disk is idle in more than half of the layers and 3 of 4 reads come true.
constexpr float kBusyDoubt = 0.5f;
constexpr float kPrecisionDoubt = 0.75f;

}  // namespace

void PrefetchSwitch::Pace::add(double value, double window) {
  steps = std::min(steps + 1, window);
  const double off = value - mean;
  mean += off / steps;
  variance += (off * (value - mean) - variance) / steps;
}

void PrefetchSwitch::settle(bool came_true) {
  (came_true ? saved_ : spent_) += 1;
  if (saved_ + spent_ > kReadsMax) {
    saved_ /= 2;
    spent_ /= 2;
  }
}

bool PrefetchSwitch::in_doubt(float busy_share) const {
  return !on_ || busy_share > kBusyDoubt || saved_ < kPrecisionDoubt * (saved_ + spent_);
}

void PrefetchSwitch::turn(bool on) {
  on_ = on;
  trying_ = false;
  phase_steps_ = 0;
  interval_ = kIntervalFirst;
  usual_ = other_ = gains_ = {};
  saved_ = spent_ = 0;
}

void PrefetchSwitch::step(double seconds, int32_t tokens, float busy_share, bool may_try) {
  CHECK(tokens > 0);
  if (tokens != tokens_) {
    // Another number of rows has another pace: begin again to measure, with what was decided.
    tokens_ = tokens;
    trying_ = false;
    phase_steps_ = 0;
    usual_ = other_ = gains_ = {};
    interval_ = std::max(interval_, kIntervalFirst);
    return;
  }
  if (on_ && saved_ + spent_ >= kReadsMin && saved_ < kPriceInVain * busy_share * spent_)
    return turn(false);
  if (++phase_steps_ <= kSkippedSteps) return;
  if (trying_) {
    other_.add(seconds / tokens, kTrialSteps);
    // What is clearly worse is not tried to the end.
    const double loss = other_.mean - usual_.mean;
    const bool worse = loss > 0 && loss * loss > kCertain * (usual_.error() + other_.error());
    if (phase_steps_ >= kTrialSteps || (other_.steps >= 3 && worse)) end_trial();
    return;
  }
  usual_.add(seconds / tokens, kUsualWindow);
  if (phase_steps_ >= interval_ && may_try && in_doubt(busy_share)) {
    trying_ = true;
    phase_steps_ = 0;
    other_ = {};
  }
}

void PrefetchSwitch::end_trial() {
  const double gain = usual_.mean - other_.mean;
  const double chance = usual_.error() + other_.error();
  gains_.add(gain, kTrialsWindow);
  const double needed = on_ ? 0 : kGainMin * usual_.mean;
  // A few trials may agree by chance: their spread is at least what that of their steps makes it.
  const double error = std::max(gains_.variance, chance) / gains_.steps;
  const bool agreed = gains_.mean > needed && gains_.steps >= kTrialsMin &&
                      gains_.mean * gains_.mean > kCertain * error;
  if (agreed || (gain > needed && gain * gain > kObvious * chance)) return turn(!on_);
  trying_ = false;
  phase_steps_ = 0;
  // What looks better than it should is tried again soon, what is clearly worse is not.
  if (gain > needed && gain * gain > chance)
    interval_ = kIntervalFirst;
  else if (gains_.steps >= kTrialsFirst || gain * gain > kCertain * chance)
    interval_ = std::min(2 * interval_, kIntervalLast);
}

}  // namespace weir::ssd
