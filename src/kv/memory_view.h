// MemoryView: where a forward pass finds what a sequence remembers: a page table for each group of
// layers (kv/layout.h), the slot of its states, and the checkpoints (kv/checkpoints.h) that a slice
// begins with and leaves.
//
// Threads: a value. What it points to stays in place, and does not change for the positions of a
// pass, until the pass has ended.
#pragma once

#include <cstdint>
#include <span>

namespace weir::kv {

// A slot that gets a copy of the states as they are before `position`.
struct StateMark {
  int32_t position = 0;
  int32_t slot = 0;
};

struct MemoryView {
  // The page of each block, from position 0, by group. Entries of a window's group before the first
  // block that the pass sees may be anything.
  const int32_t* tables = nullptr;
  int64_t stride = 0;  // From a group's table to the next; 0: one table serves them all.

  // Where layers have states: the slot that they are in, as KvCache::state() has it; the slot that
  // they are copied from before the slice, or -1; and what is copied as the slice goes on, the
  // positions ascending, each after the slice's first one and not after its end.
  int32_t state = 0;
  int32_t restored_from = -1;
  std::span<const StateMark> marks = {};
  // Where layers have cross attention: the slot of what the sequence's tokens attend to, as
  // KvCache::cross_pages() has it; -1: there is none.
  int32_t cross = -1;
  // Pages hold positions before this one already. Other sequences read them, so no slice writes
  // them.
  int32_t kept = 0;

  const int32_t* pages(int32_t group) const { return tables + group * stride; }
};

}  // namespace weir::kv
