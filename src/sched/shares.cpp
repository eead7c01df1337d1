#include "sched/shares.h"

#include "base/check.h"

namespace weir::sched {

namespace {

// Callers that are remembered, at least, with as many open as can be.
constexpr size_t kRemembered = 64;

}  // namespace

Shares::Shares(int32_t open_max) : shares_(static_cast<size_t>(open_max) + kRemembered) {}

// Of those that have nothing open the one with the most credit is forgotten: there is the least to
// remember of it.
Share* Shares::enter(uint64_t caller) {
  Share* place = nullptr;
  for (size_t i = 0; i < known_; ++i) {
    Share& share = shares_[i];
    if (share.caller == caller) {
      place = &share;
      break;
    }
    if (share.open == 0 && known_ == shares_.size() && (!place || share.used < place->used))
      place = &share;
  }
  if (!place && known_ < shares_.size()) place = &shares_[known_++];
  CHECK(place != nullptr);
  if (place->open == 0) {
    const bool new_caller = place->entered == 0 || place->caller != caller;
    if (new_caller) *place = {.caller = caller, .used = due_ - kCredit};
    place->entered = ++entries_;
    ++open_;
  }
  ++place->open;
  return place;
}

void Shares::leave(Share& share) {
  CHECK(share.open > 0);
  if (--share.open > 0) return;
  CHECK(share.running == 0);
  --open_;
}

void Shares::begin_step(int32_t prompt_tokens) {
  prompt_tokens_ = prompt_tokens;
  decodes_ = expected_ = excess_ = 0;
}

void Shares::expect_prompt(Share& share, int32_t tokens) {
  const int32_t within = std::min(tokens, static_cast<int32_t>(credit(share)) - share.expected);
  if (within <= 0) return;
  share.expected += within;
  expected_ += within;
}

int32_t Shares::decode_rows_max(const Share& share) const {
  const int32_t others = rows_of_others(share);
  return others == 0 ? std::numeric_limits<int32_t>::max() : std::max(kRowsLeast, others);
}

// All callers without credit share what they may have together: a step takes about twice as long
// with them as without, however many they are.
int32_t Shares::prompt_tokens_max(const Share& share, int32_t beside) const {
  const int32_t others = rows_of_others(share);
  if (others == 0) return std::numeric_limits<int32_t>::max();
  const int32_t allowed = std::max(kRowsLeast, std::max(beside, others) - share.decode_rows);
  return std::max({credit_left(share), allowed - excess_, 0});
}

void Shares::add_prompt(Share& share, int32_t tokens) {
  excess_ += std::max(0, tokens - credit_left(share));
  share.prompt_tokens += tokens;
}

}  // namespace weir::sched
