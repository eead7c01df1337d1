// StatePool: the slots in which running sequences keep the states of layers (StateNeed): one slot a
// sequence, the same in all such layers. Those of checkpoints are beside them (kv/checkpoints.h).
//
// A slot may be given back and taken again while a step still uses it: its next owner writes to it
// in a later step, and begins with zeros at position 0, or with a checkpoint, whatever is in it.
//
// Threads: owned by the engine thread. Allocates at construction only.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"

namespace weir::kv {

class StatePool {
 public:
  explicit StatePool(int32_t count) : count_(count) {
    for (int32_t slot = count - 1; slot >= 0; --slot) free_.push_back(slot);
  }

  int32_t count() const { return count_; }  // 0: the model has no states.
  int32_t free_count() const { return static_cast<int32_t>(free_.size()); }

  // REQUIRES: one is free.
  int32_t take() {
    CHECK(!free_.empty());
    const int32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(int32_t slot) {
    CHECK(slot >= 0 && slot < count_ && free_count() < count_);
    free_.push_back(slot);
  }

 private:
  int32_t count_;
  std::vector<int32_t> free_;
};

}  // namespace weir::kv
