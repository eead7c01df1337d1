// MemoryView: where a forward pass finds what a sequence remembers: a page table for each group of
// layers (kv/layout.h), and the slot of its states.
//
// Threads: a value. What it points to stays in place, and does not change for the positions of a
// pass, until the pass has ended.
#pragma once

#include <cstdint>

namespace weir::kv {

struct MemoryView {
  // The page of each block, from position 0, by group. Entries of a window's group before the first
  // block that the pass sees may be anything.
  const int32_t* tables = nullptr;
  int64_t stride = 0;  // From a group's table to the next; 0: one table serves them all.
  int32_t state = 0;   // KvCache::state(), where layers have states.

  const int32_t* pages(int32_t group) const { return tables + group * stride; }
};

}  // namespace weir::kv
