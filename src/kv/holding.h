// Holding: the pages of one sequence, in the order of its blocks. Only SequenceMemory changes it.
// Its memory is fixed, and entries outlive their pages until others take their place: a step that
// still runs may be reading them.
//
// Threads: one writer. Others may read through view() the entries that were there when they were
// given it, as long as the writer has not released the holding and filled it again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "kv/memory_view.h"
#include "kv/page_pool.h"
#include "kv/prefix_cache.h"

namespace weir::kv {

class Holding {
 public:
  // Takes memory for sequences of at most so many blocks. REQUIRES: it holds nothing.
  void reserve(int32_t blocks_max) {
    table_ = std::make_unique_for_overwrite<PageId[]>(static_cast<size_t>(blocks_max));
    blocks_max_ = blocks_max;
  }

  // The blocks that it has memory for.
  int32_t blocks() const { return blocks_; }
  bool empty() const { return blocks_ == 0; }
  MemoryView view() const { return {.pages = table_.get()}; }

  // Leading blocks that lie in the prefix cache.
  int32_t shared_blocks() const { return shared_; }
  // Its further blocks are shared as soon as they are full.
  bool sharing() const { return sharing_; }
  // Both have shared the same tokens so far.
  bool same_chain(const Holding& other) const {
    return shared_ == other.shared_ && key_ == other.key_;
  }

 private:
  friend class SequenceMemory;

  std::span<const PageId> pages() const { return {table_.get(), static_cast<size_t>(blocks_)}; }

  std::unique_ptr<PageId[]> table_;
  int32_t blocks_max_ = 0;
  int32_t blocks_ = 0;
  int32_t shared_ = 0;
  PrefixKey key_;  // Of the last shared block; the salt before the first.
  bool sharing_ = false;
};

}  // namespace weir::kv
