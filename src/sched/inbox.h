// Inbox: what other threads have asked of the engine, taken in between two steps.
//
// Threads: the engine thread.
#pragma once

#include "sched/engine_state.h"
#include "sched/length_class.h"

namespace weir::sched {

class Inbox {
 public:
  explicit Inbox(EngineState& state) : state_(state), length_class_(*state.facts.spec) {}

  // At most one ring full: callers that submit and cancel without end do not hold up a step.
  void drain();
  // No more is taken: ends what was submitted, also by threads that are just submitting.
  void close();

 private:
  void submit(Request* request);
  void note_media(Sequence* seq, kv::PrefixIdentity& identity) const;
  void cancel(const Request* request);

  EngineState& state_;
  const LengthClass length_class_;
};

}  // namespace weir::sched
