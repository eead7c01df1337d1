// Shares: what each caller has of the engine, so that no caller takes it from the others. Requests
// of one key, or of one address, are one caller's (Request::caller).
//
// Credit. The rows of a step are due to the callers that have something open, in equal parts, and
// at least to two. A caller that has had less than its part has credit, one that has had more has
// debt, each of up to kCredit rows. Both wear off as others compute, whether or not the caller has
// anything open. A caller that is alone uses its credit up and comes into no debt: it yields as
// soon as another one comes, and owes that nothing.
//
// A plan. Everybody waits for the whole step. So where several callers have rows in one, generated
// tokens of one caller and prompts of those without credit are bounded by what the others have in
// it: their generated tokens, and a part of their prompts within credit. These are not bounded: an
// ordinary question is computed at once. A caller that was bounded stays so for a few steps after
// the others have ended: a client that asks without a pause would else wait for a step that is all
// of that caller.
//
// Threads: owned by the engine thread. Allocates at construction only.
//
// Invariants:
// (1) A caller with anything open has one share, whose address does not change.
// (2) One caller's plans do not depend on its share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace weir::sched {

struct Share {
  uint64_t caller = 0;
  uint64_t entered = 0;  // When it had nothing open last; never equal.
  int32_t open = 0;      // Sequences that have not ended; 0: it is only remembered.
  int32_t running = 0;   // Of those, the ones that hold pages.
  double used = 0;       // Rows, on the scale of what was due.

  // Scratch of a plan.
  int32_t decode_rows = 0;
  int32_t expected = 0;       // Prompt tokens within the credit that could be in the step,
  int32_t prompt_tokens = 0;  // and all that are.
  int32_t places = 0;         // Running sequences after what is planned to be preempted,
  int64_t claims = 0;         // and the pages that those may ask for.
};

class Shares {
 public:
  // Rows that a caller may be ahead of what it is due, or short of it: one step's. Most questions
  // are shorter, so that they are computed at once; a caller that has been away makes one step
  // long. With four times as many, the first seconds of a greedy client on two cores (700 prompt
  // tokens a second) cost others five times their time to the first token.
  static constexpr double kCredit = 512;
  // What a caller may have in a step whatever the others have: a tile of rows, for fewer take
  // hardly less time.
  static constexpr int32_t kRowsLeast = 16;

  // What a row of a prompt counts that is scored: the head, its softmax and the best tokens come
  // with it. Of SmolLM2-135M sixteen of them made a step 26 ms longer, sixteen others 11 ms.
  static constexpr int32_t kScoredRow = 2;

  // For how many steps a caller that is alone again stays bounded. They are short, and a client
  // that asks on at once is there again before they are over.
  static constexpr int32_t kLinger = 8;

  // `open_max`: callers that have something open at once.
  explicit Shares(int32_t open_max);

  // A sequence of the caller begins or ends.
  Share* enter(uint64_t caller);
  void leave(Share& share);

  // Callers with something open.
  int32_t callers() const { return open_; }
  // Plans depend on shares.
  bool several() const { return open_ > 1 || lingering_ > 0; }

  // Rows that the caller may still have before it has more than its part.
  double credit(const Share& share) const {
    return std::clamp(due_ - share.used, -kCredit, kCredit);
  }
  bool in_debt(const Share& share) const { return due_ <= share.used; }
  // Callers with a higher one go first: by quarters of the credit, 0 for those in debt. Differences
  // within a quarter are no reason to let a long prompt go before a short one.
  int32_t rank(const Share& share) const {
    if (in_debt(share)) return 0;
    return 1 + std::min(static_cast<int32_t>(credit(share) / (kCredit / 4)), 3);
  }
  // Rows of a step that is planned: by caller, then all of them.
  void charge(Share& share, int32_t rows) {
    share.used = std::clamp(share.used, due_ - kCredit, due_ + kCredit) + rows;
  }
  void end_step(int32_t rows) {
    due_ += static_cast<double>(rows) / std::max(open_, 2);
    lingering_ = std::max(lingering_ - 1, 0);
  }
  // Both, of the only caller.
  void charge_alone(Share& share, int32_t rows) {
    charge(share, rows);
    end_step(rows);
    share.used = std::min(share.used, due_);
  }

  // Begins to count a step's rows; at most `prompt_tokens` are prompts'. REQUIRES: begin() of every
  // share in the plan.
  void begin_step(int32_t prompt_tokens);
  static void begin(Share& share) { share.decode_rows = share.expected = share.prompt_tokens = 0; }
  void add_decodes(Share& share, int32_t rows) {  // May be negative.
    share.decode_rows += rows;
    decodes_ += rows;
  }
  void expect_prompt(Share& share, int32_t tokens);

  // A caller got less for others' sake.
  void note_bound() {
    if (open_ > 1) lingering_ = kLinger + 1;  // This step's end counts.
  }
  // How many rows of generated tokens the caller may have in the step.
  int32_t decode_rows_max(const Share& share) const;
  // How many prompt tokens it may add; `beside`: as many as it may have at least, if not others in
  // debt have them.
  int32_t prompt_tokens_max(const Share& share, int32_t beside) const;
  void add_prompt(Share& share, int32_t tokens);

 private:
  // Prompts of others count a quarter: a step that has them may become a quarter longer. They are
  // few, and an answer waits for its first token longer than for any other.
  static constexpr int32_t kPromptPart = 4;

  int32_t credit_left(const Share& share) const {
    return static_cast<int32_t>(std::max(0.0, credit(share) - share.prompt_tokens));
  }
  int32_t rows_of_others(const Share& share) const {
    if (open_ == 1) return 1;  // They have just ended.
    const int32_t prompts = std::min(expected_ - share.expected, prompt_tokens_);
    return decodes_ - share.decode_rows + (prompts + kPromptPart - 1) / kPromptPart;
  }

  std::vector<Share> shares_;
  size_t known_ = 0;  // The first ones: open or remembered.
  int32_t open_ = 0;
  int32_t lingering_ = 0;
  uint64_t entries_ = 0;
  double due_ = 0;  // Rows that each caller was due, all its life.

  // Of the step being planned, all callers' together.
  int32_t prompt_tokens_ = 0;
  int32_t decodes_ = 0;
  int32_t expected_ = 0;
  int32_t excess_ = 0;  // Prompt tokens beyond their callers' credit.
};

}  // namespace weir::sched
