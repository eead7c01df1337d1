// Shares: what each caller is due of the engine, so that no caller takes it from the others.
// Requests of one key, or of one address, are one caller's (Request::caller).
//
// Credit. The rows of a step are due to the callers that have something open, in equal parts, and
// at least to two. A caller that has had less than its part has credit, one that has had more has
// debt, each of up to kCredit rows. Both wear off as others compute, whether or not the caller has
// anything open. A caller that is alone uses its credit up and comes into no debt: it yields as
// soon as another one comes, and owes that nothing.
//
// What follows from it for one step is in step_shares.h. A caller that was bounded for the others
// stays so for a few steps after they have ended: a client that asks without a pause would else
// wait for a step that is all of that caller.
//
// Threads: owned by the engine thread. Allocates at construction only.
//
// Invariants:
// (1) A caller with anything open has one share, whose address does not change.
// (2) One caller's plans do not depend on its share.
#pragma once

#include <algorithm>
#include <cstdint>
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
  // A caller got less for others' sake.
  void note_bound() {
    if (open_ > 1) lingering_ = kLinger + 1;  // This step's end counts.
  }

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
  // The caller has more rows in that step.
  void charge_more(Share& share, int32_t rows) {
    share.used += rows;
    due_ += static_cast<double>(rows) / std::max(open_, 2);
    if (!several()) share.used = std::min(share.used, due_);
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

 private:
  std::vector<Share> shares_;
  size_t known_ = 0;  // The first ones: open or remembered.
  int32_t open_ = 0;
  int32_t lingering_ = 0;
  uint64_t entries_ = 0;
  double due_ = 0;  // Rows that each caller was due, all its life.
};

}  // namespace weir::sched
