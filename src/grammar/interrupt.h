// Interrupt: what ends a compilation before its budget does: the request is not wanted any more, or
// the compilation takes longer than it may where it was begun, and is to be done elsewhere.
//
// Neither says anything about the grammar: an interrupted compilation has no result. So the time
// may be measured here, where a budget is counted: it decides where a grammar is compiled, never
// whether it is accepted.
//
// Threads: stop() and stopped() may be called by any; the rest by the thread that does the
// request's work, which may be another one after the first has ended.
#pragma once

#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace weir::grammar {

class Interrupt {
 public:
  using Duration = std::chrono::nanoseconds;

  // Nothing waits for the request any more.
  void stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // How much CPU time each compilation from now on may take; none: any. Zero postpones the first.
  void allow(std::optional<Duration> time) {
    allowed_ = time;
    fired_ = postponed_ = false;
  }
  bool limited() const { return allowed_.has_value(); }
  // One has taken longer, or has not been begun: the work is to be done again without a limit.
  bool postponed() const { return postponed_; }
  void postpone() { fired_ = postponed_ = true; }

  // Processor time that the calling thread has used.
  static Duration thread_time() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + Duration(now.tv_nsec);
  }

  // --- For what compiles.

  // Time is counted from here on.
  void begin() {
    if (!allowed_) return;
    if (*allowed_ <= Duration::zero()) return postpone();
    end_ = thread_time() + *allowed_;
    polls_ = 0;
  }
  // True from some time on. To be asked every few microseconds of work or so.
  bool fired() {
    if (fired_) return true;
    if (stopped()) return fired_ = true;
    if (allowed_ && ++polls_ % kPollsPerLook == 0 && thread_time() > end_) postpone();
    return fired_;
  }

 private:
  // To look at the clock is a system call, of about a microsecond at the most.
  static constexpr uint32_t kPollsPerLook = 32;

  std::atomic<bool> stopped_{false};
  std::optional<Duration> allowed_;
  Duration end_{};
  uint32_t polls_ = 0;
  bool fired_ = false, postponed_ = false;
};

}  // namespace weir::grammar
