// FairQueue: what waits to be served, by caller. The next one is the oldest of the caller that has
// been served least: costs are told afterwards, so one caller's expensive items do not cost the
// others' cheap ones a turn each.
//
// A caller that comes, or comes back, begins level with those that are here: no caller saves up for
// later. (Fair queueing by virtual time: Demers, Keshav and Shenker, "Analysis and simulation of a
// fair queueing algorithm", 1989. The time goes on by what was served, shared by all that are here,
// so that callers which come for the first time, one after the other, cannot keep the rest
// waiting.)
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

namespace weir {

template <class Item>
class FairQueue {
 public:
  // At most `taken_max` items are being served at once, `taken_of_one_max` of them one caller's.
  FairQueue(int32_t taken_max, int32_t taken_of_one_max)
      : taken_max_(taken_max), taken_of_one_max_(taken_of_one_max) {}

  void push(uint64_t caller, Item item) {
    Caller& one = callers_[caller];
    if (one.idle()) {
      one.served = std::max(one.served, level_);
      ++present_;
    }
    one.waiting.emplace_back(++pushed_, std::move(item));
    ++waiting_;
  }

  // The next item, to be settled when it has been served. None: nothing waits that may be taken.
  std::optional<Item> take() {
    if (taken_ == taken_max_) return std::nullopt;
    Caller* best = nullptr;
    for (auto it = callers_.begin(); it != callers_.end();) {
      Caller& one = it->second;
      if (one.idle() && (one.served <= level_ || callers_.size() > kCallersMax)) {
        it = callers_.erase(it);
        continue;
      }
      ++it;
      if (one.waiting.empty() || one.taken == taken_of_one_max_) continue;
      if (!best || one.before(*best)) best = &one;
    }
    if (!best) return std::nullopt;
    Item item = std::move(best->waiting.front().second);
    best->waiting.pop_front();
    --waiting_;
    ++best->taken;
    ++taken_;
    return item;
  }

  // What was taken has been served. REQUIRES: it was, and is settled once.
  void settle(uint64_t caller, int64_t cost) {
    Caller& one = callers_.find(caller)->second;
    one.served += cost;
    level_ += cost / present_;
    --one.taken;
    --taken_;
    if (one.idle()) leave();
  }

  // False: it does not wait.
  bool remove(uint64_t caller, const Item& item) {
    const auto found = callers_.find(caller);
    if (found == callers_.end()) return false;
    Caller& one = found->second;
    const auto at = std::ranges::find(one.waiting, item, &Entry::second);
    if (at == one.waiting.end()) return false;
    one.waiting.erase(at);
    --waiting_;
    if (one.idle()) leave();
    return true;
  }

  // The caller's youngest item that waits.
  std::optional<Item> youngest(uint64_t caller) const {
    const auto found = callers_.find(caller);
    if (found == callers_.end() || found->second.waiting.empty()) return std::nullopt;
    return found->second.waiting.back().second;
  }

  size_t waiting() const { return waiting_; }
  int32_t taken() const { return taken_; }

 private:
  // Callers that are not here are remembered while they have had more than others; not more of
  // them, so that a flood of addresses takes no memory.
  static constexpr size_t kCallersMax = 4096;

  using Entry = std::pair<uint64_t, Item>;  // With its number in the order of arrival.
  struct Caller {
    std::deque<Entry> waiting;
    int32_t taken = 0;
    int64_t served = 0;  // What its items have cost; at least the level when it came.

    bool idle() const { return waiting.empty() && taken == 0; }
    bool before(const Caller& other) const {
      return std::pair(served, waiting.front().first) <
             std::pair(other.served, other.waiting.front().first);
    }
  };

  void leave() {
    if (--present_ > 0) return;
    callers_.clear();  // No other caller is here to be compared with.
    level_ = 0;
  }

  const int32_t taken_max_, taken_of_one_max_;
  std::unordered_map<uint64_t, Caller> callers_;
  int64_t level_ = 0;    // What a caller would have been served that was here all the time.
  int64_t present_ = 0;  // Callers that are not idle.
  int32_t taken_ = 0;
  size_t waiting_ = 0;
  uint64_t pushed_ = 0;
};

}  // namespace weir
