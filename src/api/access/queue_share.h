// QueueShare: which places of the engine's queue the requests of batch answers may take. An answer
// of two thousand texts is no reason to turn a chat away, so together they take at most half of
// what other requests leave of the queue, and callers share that fairly: one that is alone gets
// half of it, each of n comes to a part of n + 1 (FairBudget).
//
// Threads: the loop's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/fair_budget.h"

namespace weir::api {

class QueueShare {
 public:
  explicit QueueShare(int32_t queue_max)
      : queue_max_(static_cast<size_t>(queue_max)), places_((queue_max_ + 1) / 2) {}

  // `open`: requests that the queue holds, these included. False: not now.
  bool take(uint64_t caller, int32_t open) {
    const size_t lent = places_.used();
    const size_t others = std::max(static_cast<size_t>(std::max(open, 0)), lent) - lent;
    const size_t left = queue_max_ - std::min(others, queue_max_);
    const bool taken = lent < (left + 1) / 2 && places_.take(caller, 1);
    refused_ = refused_ || !taken;
    return taken;
  }
  // True if a caller was refused since the last call: it may ask again now.
  bool give_back(uint64_t caller, size_t places) {
    places_.give_back(caller, places);
    return std::exchange(refused_, false);
  }
  size_t lent() const { return places_.used(); }

 private:
  const size_t queue_max_;
  FairBudget places_;
  bool refused_ = false;
};

}  // namespace weir::api
