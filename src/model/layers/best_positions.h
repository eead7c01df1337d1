// BestPositions: the positions of best score among any number of them, in memory for twice as many
// as are wanted.
//
// Threads: one thread has it. Invariants: what is kept does not depend on the order in which
// positions are offered; of equal scores the lower position is better; NaN is the worst score.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace weir::model {

struct ScoredPosition {
  float score = 0;
  int32_t position = 0;

  bool better_than(const ScoredPosition& other) const {
    return score != other.score ? score > other.score : position < other.position;
  }
};

class BestPositions {
 public:
  // `memory`: 2 * wanted. The first `known` of it count as offered. REQUIRES: 1 <= wanted, known <=
  // wanted.
  BestPositions(ScoredPosition* memory, int32_t wanted, int32_t known = 0)
      : all_(memory), wanted_(wanted), count_(known) {}

  void offer(ScoredPosition found) {
    if (found.score != found.score) found.score = -std::numeric_limits<float>::infinity();
    if (full_ && !found.better_than(all_[wanted_ - 1])) return;
    all_[count_++] = found;
    if (count_ == 2 * wanted_) drop();
  }
  // How many there are, at most as many as wanted: the first ones of the memory, in no order.
  int32_t finish() {
    if (count_ > wanted_) drop();
    return count_;
  }

 private:
  // The best, as many as wanted, come first, and the worst of them last.
  void drop() {
    std::nth_element(all_, all_ + wanted_ - 1, all_ + count_,
                     [](const auto& a, const auto& b) { return a.better_than(b); });
    count_ = wanted_;
    full_ = true;
  }

  ScoredPosition* all_;
  int32_t wanted_;
  int32_t count_ = 0;
  bool full_ = false;  // Whatever is kept from here on is better than all_[wanted_ - 1].
};

}  // namespace weir::model
