#include "sched/image_cache.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace weir::sched {

ImageCache::Entry* ImageCache::find(const MediaHash& hash) {
  const auto found = std::ranges::find(entries_, hash, &Entry::hash);
  if (found == entries_.end()) return nullptr;
  // Those that wait keep their turn.
  if (found->state != Entry::State::kWaiting) entries_.splice(entries_.end(), entries_, found);
  return &*found;
}

bool ImageCache::pin(std::span<const Picture* const> pictures, std::span<Entry*> entries,
                     int32_t& hits) {
  CHECK(pictures.size() == entries.size());
  // A picture that comes twice is counted twice here: that is rare, and costs room for a while.
  int64_t missing = 0;
  for (size_t i = 0; i < pictures.size(); ++i) {
    entries[i] = find(pictures[i]->hash);
    if (entries[i] == nullptr) {
      missing += bytes_of(pictures[i]->features());
      continue;
    }
    CHECK(entries[i]->rows == pictures[i]->features());
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
  hits = 0;
  for (size_t i = 0; i < pictures.size(); ++i) {
    if (entries[i] != nullptr) {
      if (entries[i]->state == Entry::State::kReady) ++hits;
      continue;
    }
    if (Entry* added = find(pictures[i]->hash)) {  // It comes twice.
      ++added->pins;
      entries[i] = added;
      continue;
    }
    const int32_t rows = pictures[i]->features();
    const auto count = static_cast<size_t>(rows * row_floats_);
    entries_.push_back({.hash = pictures[i]->hash,
                        .rows = rows,
                        .features = std::make_unique_for_overwrite<float[]>(count),
                        .count = count,
                        .pins = 1,
                        .input = pictures[i]->input});
    entries[i] = &entries_.back();
    bytes_ += entries[i]->bytes();
  }
  return true;
}

void ImageCache::unpin(Entry* entry) {
  CHECK(entry->pins > 0);
  if (--entry->pins > 0 || entry->state != Entry::State::kWaiting) return;
  erase(std::ranges::find(entries_, entry, [](const Entry& each) { return &each; }));
}

size_t ImageCache::waiting(std::span<Entry*> entries) {
  size_t count = 0;
  for (Entry& entry : entries_) {
    if (count == entries.size()) break;
    if (entry.state == Entry::State::kWaiting) entries[count++] = &entry;
  }
  return count;
}

void ImageCache::erase(Entries::iterator entry) {
  bytes_ -= entry->bytes();
  entries_.erase(entry);
}

void ImageCache::check() const {
  int64_t bytes = 0;
  for (const Entry& entry : entries_) {
    bytes += entry.bytes();
    CHECK(entry.bytes() == bytes_of(entry.rows));
    CHECK(entry.state != Entry::State::kWaiting || entry.pins > 0);
    CHECK((entry.state == Entry::State::kReady) == (entry.input == nullptr));
    CHECK(std::ranges::count(entries_, entry.hash, &Entry::hash) == 1);
  }
  CHECK(bytes == bytes_ && bytes_ <= bytes_max_);
}

}  // namespace weir::sched
