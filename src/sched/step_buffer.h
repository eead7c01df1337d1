// StepBuffer: one step with all its arrays: what the scheduler planned, the batch that the model
// sees, and what the last op of the step samples. The engine has two and uses them in turn: while
// one runs, the results of the other are published and the next step is planned into it.
//
// Threads: between plan and launch the engine thread's. While the step runs, team members read the
// batch and write the entries of `sampled`, `chosen` and `tops` of their rows, each exactly once.
// The batch that runs reads `sampled` of the other buffer, so a plan must leave that alone.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/token_log.h"
#include "kv/checkpoints.h"
#include "model/batch.h"
#include "sched/request.h"
#include "sched/scheduler.h"

namespace weir::sched {

struct StepBuffer {
  // A row whose logits are wanted: to choose the next token, or, where that is one of the prompt,
  // to see how likely it was.
  struct Sample {
    Sequence* seq = nullptr;
    int32_t output_index = 0;   // How many tokens of its output come before.
    int32_t prompt_token = -1;  // The prompt's next token; -1: one is chosen.
  };
  // Rows whose hidden states are pooled.
  struct Pooled {
    Sequence* seq = nullptr;
    int32_t first_position = 0;
    bool last = false;  // They end the prompt.
  };

  // A slice that the model could not compute.
  struct Failure {
    int32_t slice = 0;
    std::string why;
  };

  explicit StepBuffer(const Limits& limits)
      : sampled(static_cast<size_t>(limits.step_tokens_max)),
        chosen(static_cast<size_t>(limits.step_tokens_max)),
        tops(static_cast<size_t>(limits.step_tokens_max) * kTopLogprobsMax),
        top_counts(static_cast<size_t>(limits.step_tokens_max)),
        ranks(static_cast<size_t>(limits.step_tokens_max)),
        continuations(static_cast<size_t>(limits.step_tokens_max)),
        forced(static_cast<size_t>(limits.step_tokens_max) * sample::kForcedTokensMax),
        forced_counts(static_cast<size_t>(limits.step_tokens_max)) {
    const auto running_max = static_cast<size_t>(limits.running_max);
    const auto rows_max = static_cast<size_t>(limits.step_tokens_max);
    step.slices.reserve(running_max);
    tokens.reserve(rows_max);
    slices.reserve(running_max);
    sample_rows.reserve(rows_max);
    samples.reserve(rows_max);
    hidden_rows.reserve(running_max);
    pooled.reserve(running_max);
    ends.reserve(running_max);
    marks.reserve(running_max * kv::Checkpoints::kMarksMax);
  }

  bool empty() const { return step.slices.empty(); }
  void clear() {
    step.clear();
    tokens.clear();
    slices.clear();
    sample_rows.clear();
    samples.clear();
    hidden_rows.clear();
    pooled.clear();
    ends.clear();
    failures.clear();
    marks.clear();
  }

  // The view with marks of the buffer's own: its sequence's change when its next slice is planned.
  kv::MemoryView keep(kv::MemoryView view) {
    const size_t first = marks.size();
    marks.insert(marks.end(), view.marks.begin(), view.marks.end());
    view.marks = std::span(marks).subspan(first);
    return view;
  }

  std::span<TokenLogprob> top(size_t sample) {
    return std::span(tops).subspan(sample * kTopLogprobsMax, kTopLogprobsMax);
  }

  std::span<int32_t> forced_by(size_t sample) {
    return std::span(forced).subspan(sample * sample::kForcedTokensMax, sample::kForcedTokensMax);
  }

  Step step;

  // The batch's arrays.
  std::vector<int32_t> tokens;
  std::vector<model::BatchSlice> slices;
  std::vector<kv::StateMark> marks;  // Of the slices; never more than it was made for.
  std::vector<int32_t> sample_rows;
  std::vector<model::HiddenRows> hidden_rows;

  std::vector<Pooled> pooled;   // By index in `hidden_rows`.
  std::vector<Sequence*> ends;  // Without an answer, and done with this step.
  std::vector<Failure> failures;

  // By sample index.
  std::vector<Sample> samples;
  std::vector<int32_t> sampled;
  std::vector<TokenLogprob> chosen;
  std::vector<TokenLogprob> tops;  // kTopLogprobsMax each.
  std::vector<int32_t> top_counts;
  std::vector<int32_t> ranks;  // Of prompt tokens.
  std::vector<sample::Continuation> continuations;
  std::vector<int32_t> forced;  // kForcedTokensMax each: what follows the token chosen.
  std::vector<int32_t> forced_counts;
};

}  // namespace weir::sched
