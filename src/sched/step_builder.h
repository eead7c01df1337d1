// StepBuilder makes the next step: asks the scheduler what it has, and writes the batch and the
// jobs of it. A token that is not known yet is named by the place where the running step leaves it.
//
// Threads: the engine thread.
#pragma once

#include "sched/engine_state.h"
#include "sched/speculation.h"
#include "sched/step_cost.h"

namespace weir::sched {

class StepBuilder {
 public:
  // `speculation` outlives it.
  StepBuilder(EngineState& state, const EngineOptions& options, Speculation& speculation);

  // Plans into `next` while another step runs, or, if `other_runs` is false, none.
  void plan(StepBuffer& next, bool other_runs);
  // The same for prompts that are computed some sublayers at a time.
  void plan_slab(StepBuffer& slab);
  // The step has run, in so many seconds.
  void learn(const Step& step, double seconds);

 private:
  Scheduler::PromptTokens prompt_tokens() const;
  void begin(Sequence* seq) const;
  void write(StepBuffer& next, bool other_runs) const;
  void write_slice(StepBuffer& next, const Slice& slice, bool other_runs) const;
  void write_media(StepBuffer& next, const Slice& slice) const;
  static void want_rows(StepBuffer& next, const Slice& slice);
  static void want_scores(StepBuffer& next, const Slice& slice);
  static void want_hidden(StepBuffer& next, const Slice& slice);
  static void want_tokens(StepBuffer& next, const Slice& slice);

  EngineState& state_;
  Speculation& speculation_;
  const double step_seconds_max_;
  const bool three_positions_;
  StepCost cost_;
  int32_t planned_decodes_ = 0;  // Rows of decoders in the last step that was planned.
};

}  // namespace weir::sched
