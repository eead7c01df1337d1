// StepBuffer: one step with all its arrays: what the scheduler planned, the batch, what is done
// with its rows, and what comes of them. The engine has two and uses them in turn: while one runs,
// the results of the other are published and the next step is planned into it.
//
// Threads: between plan and launch the engine thread's; then as exec::StepWork. The batch that runs
// reads `results.taken` of the other buffer, so a plan must leave that alone.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/step_work.h"
#include "model/batch_builder.h"
#include "sched/request.h"
#include "sched/step.h"

namespace weir::sched {

struct StepBuffer {
  // `rows_max`: of the step.
  StepBuffer(int32_t rows_max, int32_t running_max)
      : batch(rows_max, running_max), results(rows_max) {
    const auto slices_max = static_cast<size_t>(running_max);
    step.slices.reserve(slices_max);
    jobs.reserve(2 * slices_max);
    following.reserve(static_cast<size_t>(rows_max));
    ends.reserve(slices_max);
  }

  bool empty() const { return step.slices.empty(); }
  void clear() {
    step.clear();
    batch.clear();
    jobs.clear();
    following.clear();
    ends.clear();
    results.clear();
  }

  Sequence* sequence_of(const model::Wanted& wanted) const {
    return step.slices[static_cast<size_t>(wanted.slice)].seq;
  }
  // `before`: the step whose tokens this one goes on from; null: it needs none.
  exec::StepWork work(const StepBuffer* before) {
    return {.batch = batch.batch(before ? before->results.taken.data() : nullptr),
            .jobs = jobs,
            .results = results};
  }

  Step step;
  model::BatchBuilder batch;       // A slice for each of the step's, in their order.
  std::vector<exec::Job> jobs;     // For each entry of the batch's `wanted`.
  std::vector<int32_t> following;  // Tokens of prompts that rows are scored by.
  std::vector<Sequence*> ends;     // Without an answer, and done with this step.
  exec::StepResults results;
  uint64_t plan = 0;  // The number of its plan (OpenSequences::plan).
};

}  // namespace weir::sched
