// Publisher gives the requests what a step has computed for them: tokens, scores, vectors,
// progress, and ends.
//
// Threads: the engine thread.
#pragma once

#include "sched/engine_state.h"

namespace weir::sched {

class Publisher {
 public:
  explicit Publisher(EngineState& state) : state_(state) {}

  // Of a step that has run: its results, then it refers to its sequences no more. An empty one has
  // none.
  void publish(StepBuffer& ran);

 private:
  void check_weights();
  void publish_failures(StepBuffer& ran);
  void note_progress(const StepBuffer& ran);
  void publish_entry(StepBuffer& ran, size_t entry);
  bool publish_probe(const StepBuffer& ran, size_t entry, Sequence* seq);
  void publish_scores(StepBuffer& ran, const model::Wanted& wanted, Sequence* seq);
  void publish_tokens(StepBuffer& ran, const model::Wanted& wanted, Sequence* seq);
  bool publish_token(exec::StepResults& results, int32_t row, Sequence* seq);
  void publish_end(Sequence* seq);
  void note_prompt(const Sequence* seq) const;

  EngineState& state_;
  Clock::time_point now_{};  // Of the call at hand.
};

}  // namespace weir::sched
