#include "sched/feature_cache.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace weir::sched {

FeatureCache::Entry* FeatureCache::find(const MediaHash& hash) {
  const auto found = std::ranges::find(entries_, hash, &Entry::hash);
  if (found == entries_.end()) return nullptr;
  // Those that wait keep their turn.
  if (found->state != Entry::State::kWaiting) entries_.splice(entries_.end(), entries_, found);
  return &*found;
}

bool FeatureCache::pin(std::span<const Medium* const> media, std::span<Entry*> entries) {
  CHECK(media.size() == entries.size());
  // What comes twice is counted twice here: that is rare, and costs room for a while.
  int64_t missing = 0;
  for (size_t i = 0; i < media.size(); ++i) {
    entries[i] = find(media[i]->hash);
    if (entries[i] == nullptr) {
      missing += bytes_of(media[i]->features());
      continue;
    }
    CHECK(entries[i]->rows == media[i]->features());
    ++entries[i]->pins;
  }
  int64_t pinned = 0;
  for (const Entry& entry : entries_)
    if (stays(entry)) pinned += entry.bytes();
  if (pinned + missing > bytes_max_) {
    for (Entry* entry : entries)
      if (entry != nullptr) unpin(entry);
    return false;
  }
  for (auto entry = entries_.begin(); bytes_ + missing > bytes_max_;) {
    const auto next = std::next(entry);
    if (!stays(*entry)) erase(entry);
    entry = next;
  }
  for (size_t i = 0; i < media.size(); ++i) {
    if (entries[i] != nullptr) continue;
    if (Entry* added = find(media[i]->hash)) {  // It comes twice.
      ++added->pins;
      entries[i] = added;
      continue;
    }
    const int32_t rows = media[i]->features();
    const auto count = static_cast<size_t>(rows * row_floats_);
    entries_.push_back({.hash = media[i]->hash,
                        .rows = rows,
                        .features = std::make_unique_for_overwrite<float[]>(count),
                        .count = count,
                        .pins = 1,
                        .input = media[i]->input});
    entries[i] = &entries_.back();
    bytes_ += entries[i]->bytes();
  }
  return true;
}

void FeatureCache::unpin(Entry* entry) {
  CHECK(entry->pins > 0);
  if (--entry->pins > 0 || entry->state != Entry::State::kWaiting) return;
  erase(std::ranges::find(entries_, entry, [](const Entry& each) { return &each; }));
}

size_t FeatureCache::waiting(std::span<Entry*> entries) {
  size_t count = 0;
  for (Entry& entry : entries_) {
    if (count == entries.size()) break;
    if (entry.state == Entry::State::kWaiting) entries[count++] = &entry;
  }
  return count;
}

void FeatureCache::erase(Entries::iterator entry) {
  bytes_ -= entry->bytes();
  entries_.erase(entry);
}

void FeatureCache::check() const {
  int64_t bytes = 0;
  for (const Entry& entry : entries_) {
    bytes += entry.bytes();
    CHECK(entry.bytes() == bytes_of(entry.rows));
    CHECK(entry.state != Entry::State::kWaiting || entry.pins > 0);
    CHECK((entry.state == Entry::State::kReady) == !entry.input);
    CHECK(std::ranges::count(entries_, entry.hash, &Entry::hash) == 1);
  }
  CHECK(bytes == bytes_ && bytes_ <= bytes_max_);
}

}  // namespace weir::sched
