// FeatureCache: features of pictures and sounds, by the hash of what an encoder reads of them,
// within a budget. What several sequences have is there once; what none needs stays while there is
// room, and the least recently used goes first.
//
// Threads: owned by the engine thread. Allocates for each medium that it lacks.
//
// Invariants:
// (1) The bytes of all entries are at most the budget.
// (2) What a sequence has pinned stays, and so does what is being encoded.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "sched/prompt_media.h"

namespace weir::sched {

class FeatureCache {
 public:
  struct Entry {
    enum class State : uint8_t { kWaiting, kEncoding, kReady } state = State::kWaiting;
    MediaHash hash{};
    int32_t rows = 0;
    std::unique_ptr<float[]> features;  // As exec::EncodeTask has them.
    size_t count = 0;                   // Numbers.
    int32_t pins = 0;                   // By sequences.
    MediumInput input;                  // What is encoded; none once it is ready.

    int64_t bytes() const { return static_cast<int64_t>(count * sizeof(float)); }
  };

  // `row_floats`: of a row of features with all its levels.
  FeatureCache(int64_t bytes_max, int64_t row_floats)
      : bytes_max_(bytes_max), row_floats_(row_floats) {}

  // The medium's entry, or null. It counts as used now.
  Entry* find(const MediaHash& hash);
  // Pins the entries of all these media, in order, and adds those that it lacks, which wait to be
  // encoded then; or does nothing and returns false: what is pinned leaves no room for them.
  bool pin(std::span<const Medium* const> media, std::span<Entry*> entries);
  // One that waits and that no sequence needs any more goes.
  void unpin(Entry* entry);

  // Those that wait, in the order in which they came; at most as many as `entries` holds. Returns
  // how many.
  size_t waiting(std::span<Entry*> entries);

  int64_t bytes() const { return bytes_; }
  int64_t bytes_max() const { return bytes_max_; }
  int64_t bytes_of(int32_t rows) const {
    return rows * row_floats_ * static_cast<int64_t>(sizeof(float));
  }
  // Walks everything and checks the invariants.
  void check() const;

 private:
  using Entries = std::list<Entry>;

  static bool stays(const Entry& entry) {
    return entry.pins > 0 || entry.state == Entry::State::kEncoding;
  }
  void erase(Entries::iterator entry);

  const int64_t bytes_max_;
  const int64_t row_floats_;
  Entries entries_;  // The least recently used first; there are few, so they are looked through.
  int64_t bytes_ = 0;
};

}  // namespace weir::sched
