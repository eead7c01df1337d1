#include "ssd/oracle_window.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "base/check.h"

namespace weir::ssd {

namespace {

// An entry: the visit, the expert's number, and two flags.
constexpr int kVisitShift = 32, kFlagBits = 2;
constexpr uint64_t kFound = 1, kCounted = 2;
constexpr uint32_t kNever = UINT32_MAX;

// Belady's cache of one class: what is needed last goes first, and what is needed later than all
// that is there is not kept.
class BeladyCache {
 public:
  BeladyCache(size_t keys, int64_t slots) : next_of_(keys, kAbsent), free_(slots) {}

  // The key is demanded now, and `next` time at visit `next`. True: it was there. While there are
  // free slots everything was there: a cache that knew the future would have begun with it.
  bool demand(uint32_t key, uint32_t next) {
    uint32_t& known = next_of_[key];
    const bool found = known != kAbsent || free_ > 0;
    if (known == kAbsent && free_ > 0) {
      --free_;
    } else if (known == kAbsent) {
      const uint32_t last = last_needed();
      if (last == kAbsent || next >= next_of_[last]) return false;
      next_of_[last] = kAbsent;
    }
    known = next;
    by_next_.emplace(next, key);
    return found;
  }

 private:
  static constexpr uint32_t kAbsent = kNever - 1;

  // What is there and needed last; kAbsent: nothing is there. Entries that newer ones have replaced
  // are dropped on the way.
  uint32_t last_needed() {
    while (!by_next_.empty()) {
      const auto [next, key] = by_next_.top();
      if (next_of_[key] == next) return key;
      by_next_.pop();
    }
    return kAbsent;
  }

  std::vector<uint32_t> next_of_;
  std::priority_queue<std::pair<uint32_t, uint32_t>> by_next_;
  int64_t free_;
};

}  // namespace

OracleWindow::OracleWindow(int32_t layers, int32_t experts, int32_t top_k,
                           std::span<const int32_t> class_of_layer)
    : layers_(layers),
      experts_(experts),
      class_of_layer_(class_of_layer.begin(), class_of_layer.end()),
      sampled_(static_cast<size_t>(layers), false),
      ring_(kDemandsMax) {
  CHECK(std::ssize(class_of_layer) == layers && top_k > 0);
  // In the middle of as many equal stretches of layers.
  const int32_t count = std::clamp(kDemandsOfToken / top_k, 1, layers);
  for (int32_t i = 0; i < count; ++i)
    sampled_[static_cast<size_t>((2 * i + 1) * layers / (2 * count))] = true;
  share_ = static_cast<double>(count) / layers;
}

// The count goes up before the entry is written, so that a thread that reads a new entry in an old
// one's place sees by the count that it is new.
void OracleWindow::record(ExpertKey key, bool found, bool counted) {
  if (!sampled_[static_cast<size_t>(key.layer)]) return;
  const auto number = static_cast<uint32_t>(key.layer * experts_ + key.expert);
  const uint64_t at = count_.load(std::memory_order_relaxed);
  count_.store(at + 1, std::memory_order_release);
  ring_[at % kDemandsMax].store(uint64_t{visit_} << kVisitShift | uint64_t{number} << kFlagBits |
                                    (found ? kFound : 0) | (counted ? kCounted : 0),
                                std::memory_order_release);
}

std::vector<OracleWindow::Demand> OracleWindow::snapshot() const {
  const uint64_t end = count_.load(std::memory_order_acquire);
  // The newest may not be written yet.
  const uint64_t last = end > 0 ? end - 1 : 0;
  const uint64_t first = end > kDemandsMax ? end - kDemandsMax : 0;
  std::vector<uint64_t> entries;
  entries.reserve(last - first);
  for (uint64_t i = first; i < last; ++i)
    entries.push_back(ring_[i % kDemandsMax].load(std::memory_order_acquire));
  const uint64_t now = count_.load(std::memory_order_relaxed);
  const uint64_t kept = std::min(last, now > kDemandsMax ? now - kDemandsMax : 0);
  std::vector<Demand> demands;
  uint32_t first_visit = 0;
  demands.reserve(last - std::max(kept, first));
  for (uint64_t i = std::max(kept, first); i < last; ++i) {
    const uint64_t entry = entries[i - first];
    // Counted from the window's first, so that a number that begins anew is none the less later.
    const auto visit = static_cast<uint32_t>(entry >> kVisitShift);
    if (demands.empty()) first_visit = visit;
    demands.push_back({.visit = visit - first_visit,
                       .key = static_cast<uint32_t>(entry) >> kFlagBits,
                       .found = (entry & kFound) != 0,
                       .counted = (entry & kCounted) != 0});
  }
  return demands;
}

OracleWindow::Rates OracleWindow::replay(std::span<const int32_t> slots_of_class) const {
  const std::vector<Demand> demands = snapshot();
  const auto keys = static_cast<size_t>(layers_) * static_cast<size_t>(experts_);
  std::vector<uint32_t> next(demands.size(), kNever), seen(keys, kNever);
  for (size_t i = demands.size(); i-- > 0;)
    next[i] = std::exchange(seen[demands[i].key], demands[i].visit);
  std::vector<BeladyCache> caches;
  for (const int32_t slots : slots_of_class)
    caches.emplace_back(keys, static_cast<int64_t>(slots * share_ + 0.5));
  Rates rates;
  for (size_t i = 0; i < demands.size(); ++i) {
    const Demand& demand = demands[i];
    const auto layer = static_cast<size_t>(demand.key / static_cast<uint32_t>(experts_));
    BeladyCache& cache = caches[static_cast<size_t>(class_of_layer_[layer])];
    const bool found = cache.demand(demand.key, next[i]);
    if (!demand.counted || i < demands.size() / 4) continue;
    ++rates.demands;
    rates.found += demand.found ? 1 : 0;
    rates.oracle += found ? 1 : 0;
  }
  return rates;
}

double OracleWindow::Rates::ratio() const {
  return oracle == 0 ? 0 : static_cast<double>(found) / static_cast<double>(oracle);
}

}  // namespace weir::ssd
