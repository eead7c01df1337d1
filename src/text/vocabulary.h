// Vocabulary: a model's tokens by id and ids by token.
//
// Threads: immutable once built.
//
// Invariants:
// (1) Ids are below kVocabularyIdMax and, so that tables by id stay small, not far above the number
//     of entries.
// (2) find(token(id)) == id for every id that has a token, except where a token was added twice
//     (Unigram lists may): then the later id is found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir::text {

// Eight times the largest vocabulary known (about two million), 2^24.
inline constexpr int64_t kVocabularyIdMax = int64_t{1} << 24;

class Vocabulary {
 public:
  // Room for `entries` tokens of `bytes` bytes together.
  void reserve(size_t entries, size_t bytes);
  // An error names the token: an id out of range or taken.
  Result<void> add(std::string_view token, int64_t id);

  std::optional<int32_t> find(std::string_view token) const;
  bool has(int32_t id) const {
    return id >= 0 && static_cast<size_t>(id) < entries_.size() &&
           entries_[static_cast<size_t>(id)].bytes != kHole;
  }
  // Empty for unknown ids.
  std::string_view token(int32_t id) const;
  size_t count() const { return count_; }
  int32_t id_end() const { return static_cast<int32_t>(entries_.size()); }  // Largest id + 1.

 private:
  static constexpr uint32_t kHole = UINT32_MAX;
  struct Entry {
    uint32_t offset = 0;
    uint32_t bytes = kHole;
  };
  struct Slot {
    uint32_t tag = 0;  // The hash's upper half; compared before the bytes are.
    int32_t id = -1;   // -1: free.
  };

  void insert(std::string_view token, int32_t id);
  void rehash(size_t slots);

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;  // Open addressing, a power of two, at most half full.
  size_t count_ = 0;
  size_t expected_ = 0;
};

}  // namespace weir::text
