// StepShares: how many rows each caller may have in one step, as it is planned.
//
// All callers wait for the whole step. So where several have rows in one, generated tokens of one
// caller and prompts of those without credit are bounded by what the others have in it: their
// generated tokens, and a part of their prompts within credit. These are not bounded: an ordinary
// question is computed at once.
//
// Threads: owned by the engine thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sched/shares.h"

namespace weir::sched {

class StepShares {
 public:
  // What a caller may have in a step whatever the others have: a tile of rows, for fewer take
  // hardly less time.
  static constexpr int32_t kRowsLeast = 16;

  // What a row of a prompt counts that is scored: the head, its softmax and the best tokens come
  // with it. Of SmolLM2-135M sixteen of them made a step 26 ms longer, sixteen others 11 ms.
  static constexpr int32_t kScoredRow = 2;

  // `prompt_tokens`: how many the step has at most. `shares` outlives it.
  StepShares(const Shares& shares, int32_t prompt_tokens)
      : shares_(&shares), prompt_tokens_(prompt_tokens) {}

  // REQUIRES, before anything else of a caller is counted: it begins at 0.
  static void begin(Share& share) { share.decode_rows = share.expected = share.prompt_tokens = 0; }

  // What is in the step, or could be.
  void add_decodes(Share& share, int32_t rows) {  // May be negative.
    share.decode_rows += rows;
    decodes_ += rows;
  }
  void expect_prompt(Share& share, int32_t tokens);
  void add_prompt(Share& share, int32_t tokens);

  // How many rows of generated tokens the caller may have in the step.
  int32_t decode_rows_max(const Share& share) const;
  // How many prompt tokens it may add; `beside`: as many as it may have at least, if not others in
  // debt have them.
  int32_t prompt_tokens_max(const Share& share, int32_t beside) const;

 private:
  // Prompts of others count a quarter: a step that has them may become a quarter longer. They are
  // few, and an answer waits for its first token longer than for any other.
  static constexpr int32_t kPromptPart = 4;

  int32_t credit_left(const Share& share) const {
    return static_cast<int32_t>(std::max(0.0, shares_->credit(share) - share.prompt_tokens));
  }
  int32_t rows_of_others(const Share& share) const;

  const Shares* shares_;
  // All callers' together.
  int32_t prompt_tokens_;
  int32_t decodes_ = 0;
  int32_t expected_ = 0;
  int32_t excess_ = 0;  // Prompt tokens beyond their callers' credit.
};

}  // namespace weir::sched
