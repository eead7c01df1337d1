#include "sched/step_shares.h"

#include <limits>

namespace weir::sched {

void StepShares::expect_prompt(Share& share, int32_t tokens) {
  const int32_t within =
      std::min(tokens, static_cast<int32_t>(shares_->credit(share)) - share.expected);
  if (within <= 0) return;
  share.expected += within;
  expected_ += within;
}

void StepShares::add_prompt(Share& share, int32_t tokens) {
  excess_ += std::max(0, tokens - credit_left(share));
  share.prompt_tokens += tokens;
}

int32_t StepShares::rows_of_others(const Share& share) const {
  if (shares_->callers() == 1) return 1;  // They have just ended.
  const int32_t prompts = std::min(expected_ - share.expected, prompt_tokens_);
  return decodes_ - share.decode_rows + (prompts + kPromptPart - 1) / kPromptPart;
}

int32_t StepShares::decode_rows_max(const Share& share) const {
  const int32_t others = rows_of_others(share);
  return others == 0 ? std::numeric_limits<int32_t>::max() : std::max(kRowsLeast, others);
}

// All callers without credit share what they may have together: a step takes about twice as long
// with them as without, however many they are.
int32_t StepShares::prompt_tokens_max(const Share& share, int32_t beside) const {
  const int32_t others = rows_of_others(share);
  if (others == 0) return std::numeric_limits<int32_t>::max();
  const int32_t allowed = std::max(kRowsLeast, std::max(beside, others) - share.decode_rows);
  return std::max({credit_left(share), allowed - excess_, 0});
}

}  // namespace weir::sched
