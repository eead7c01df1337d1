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

}  // namespace weir::sched
