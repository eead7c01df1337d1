// FairBudget: bytes that several holders share, of which none may keep the others from theirs.
//
// A holder may take bytes as long as what it holds then is no more than `factor` times what is left
// then. With 1, one that is alone gets half of the budget, each of n that take and give back in
// turn comes to a part of n + 1, and one such part is free for a holder that comes later; with 4
// these are four fifths, and 4 and 1 of 4 n + 1 parts. (Dynamic thresholds: Choudhury and Hahne,
// "Dynamic queue length thresholds for shared-memory packet switches", 1998.) Beside that, a holder
// of nothing may take all but an eighth at once: one large request is served while nothing else is,
// and small ones find room beside it.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace weir {

class FairBudget {
 public:
  explicit FairBudget(size_t bytes_max, size_t factor = 1)
      : bytes_max_(bytes_max), factor_(factor) {}

  // False, and nothing is taken, if that would be more than the holder's share.
  bool take(uint64_t holder, size_t bytes) {
    return bytes <= room(holder) && take_more(holder, bytes);
  }

  // REQUIRES: the holder has taken that much.
  void give_back(uint64_t holder, size_t bytes) {
    if (bytes == 0) return;
    used_ -= bytes;
    const auto found = held_.find(holder);
    found->second -= bytes;
    if (found->second == 0) held_.erase(found);
  }

  // The most that the holder may take now.
  size_t room(uint64_t holder) const {
    const size_t free = bytes_max_ - used_, held = held_by(holder);
    // held + share <= factor * (free - share).
    const size_t share = factor_ * free > held ? (factor_ * free - held) / (factor_ + 1) : 0;
    const size_t reserve = bytes_max_ - most_of_one(bytes_max_);
    return held == 0 && free > reserve ? std::max(share, free - reserve) : share;
  }
  // Takes bytes as long as any are left: for what holds a share and must not stop halfway.
  bool take_more(uint64_t holder, size_t bytes) {
    if (bytes > bytes_max_ - used_) return false;
    if (bytes == 0) return true;
    used_ += bytes;
    held_[holder] += bytes;
    return true;
  }
  size_t held_by(uint64_t holder) const {
    const auto found = held_.find(holder);
    return found == held_.end() ? 0 : found->second;
  }
  size_t used() const { return used_; }
  size_t bytes_max() const { return bytes_max_; }
  // What a holder gets at once that is alone,
  static constexpr size_t most_of_one(size_t bytes_max) { return bytes_max - bytes_max / 8; }
  // and the size of a budget that gives one holder so much.
  static constexpr size_t size_for(size_t most_of_one) { return (most_of_one * 8 + 6) / 7; }

 private:
  const size_t bytes_max_, factor_;
  size_t used_ = 0;
  std::unordered_map<uint64_t, size_t> held_;  // Of those that hold something.
};

}  // namespace weir
