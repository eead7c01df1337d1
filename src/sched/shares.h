// Shares: what each caller has of the engine, so that no caller takes it from the others. Requests
// of one key, or of one address, are one caller's (Request::caller).
//
// Credit. The rows of a step are due to the callers that have something open, in equal parts. A
// caller that has had less than its part has credit, one that has had more has debt, each of up to
// kCredit rows. Both wear off as others compute, whether or not the caller has anything open. To a
// caller that is alone is due all that it takes.
//
// A plan. Where several callers have rows in a step, prompts of a caller without credit are bounded
// by the rows that the step has anyhow (prompt_tokens_max()), because the others' tokens wait for
// them. Prompts within their caller's credit are not: an ordinary question is computed at once.
//
// Threads: owned by the engine thread. Allocates at construction only.
//
// Invariants:
// (1) A caller with anything open has one share, whose address does not change.
// (2) With one caller nothing here depends on what was planned: its credit stays as it is.
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
  int32_t ordinary_rows = 0;  // Decoders and prompts within the credit.
  int32_t prompt_tokens = 0;
  int32_t places = 0;  // Running sequences after what is planned to be preempted,
  int64_t claims = 0;  // and the pages that those may ask for.
};

class Shares {
 public:
  // Rows that a caller may be ahead of what it is due, or behind it. Most questions are shorter, so
  // that they are computed at once; a caller that has been away makes four steps of 512 long.
  static constexpr double kCredit = 2048;
  // What a caller may have in a step whatever the others have: a tile of rows, for fewer take
  // hardly less time.
  static constexpr int32_t kRowsLeast = 16;

  // `open_max`: callers that have something open at once.
  explicit Shares(int32_t open_max);

  // A sequence of the caller begins or ends.
  Share* enter(uint64_t caller);
  void leave(Share& share);

  // Callers with something open.
  int32_t callers() const { return open_; }
  bool several() const { return open_ > 1; }

  // Rows that the caller may still have before it has more than its part.
  double credit(const Share& share) const {
    return std::clamp(due_ - share.used, -kCredit, kCredit);
  }
  bool in_debt(const Share& share) const { return due_ <= share.used; }
  // Rows of a step that is planned: by caller, then all of them.
  void charge(Share& share, int32_t rows) {
    share.used = std::clamp(share.used, due_ - kCredit, due_ + kCredit) + rows;
  }
  void end_step(int32_t rows) { due_ += static_cast<double>(rows) / std::max(open_, 1); }

  // How many rows one caller may have beside others that have `others`.
  static int32_t rows_beside(int32_t others) {
    return others == 0 ? std::numeric_limits<int32_t>::max() : std::max(kRowsLeast, others);
  }

  // Begins the prompts of a step. `beside`: tokens that they may have at least beside decoders.
  // REQUIRES: of all shares in the plan, begin() was called.
  void begin_prompts(int32_t beside);
  static void begin(Share& share) {
    share.decode_rows = share.ordinary_rows = share.prompt_tokens = 0;
  }
  void add_decode(Share& share, int32_t rows);
  // The most prompt tokens that the caller may add to the step.
  int32_t prompt_tokens_max(const Share& share) const;
  void add_prompt(Share& share, int32_t tokens);

 private:
  int32_t credit_left(const Share& share) const {
    return static_cast<int32_t>(std::max(0.0, credit(share) - share.prompt_tokens));
  }

  std::vector<Share> shares_;
  size_t known_ = 0;  // The first ones: open or remembered.
  int32_t open_ = 0;
  uint64_t entries_ = 0;
  double due_ = 0;  // Rows that each caller was due, all its life.

  // Of the step being planned.
  int32_t beside_ = 0;
  int32_t ordinary_ = 0;  // Rows of all callers' decoders and prompts within credit.
  int32_t excess_ = 0;    // Prompt tokens beyond.
};

}  // namespace weir::sched
