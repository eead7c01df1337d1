// Holding: the pages of one sequence, by group and block, the slot of its states, what it has to do
// with checkpoints of them, and the slot of what it attends to besides. Only SequenceMemory changes
// it. Its memory is fixed, and entries outlive their pages until others take their place: a step
// that still runs may be reading them.
//
// Threads: one writer. Others may read through view() the entries that were there when they were
// given it, as long as the writer has not released the holding and filled it again.
//
// Invariants:
// (1) Of the spine it holds a page for each of its blocks; of a window's group for those from
//     first_[group] on; of hot pages for those from there up to hot_end_, and, if that is above 0,
//     for the first one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "kv/checkpoints.h"
#include "kv/layout.h"
#include "kv/memory_view.h"
#include "kv/page_pool.h"
#include "kv/prefix_cache.h"

namespace weir::kv {

class Holding {
 public:
  // Takes memory for sequences of at most so many blocks. REQUIRES: it holds nothing.
  void reserve(int32_t groups, int32_t blocks_max) {
    tables_ = std::make_unique_for_overwrite<PageId[]>(static_cast<size_t>(groups) *
                                                       static_cast<size_t>(blocks_max));
    blocks_max_ = blocks_max;
  }

  // The blocks that it has memory for.
  int32_t blocks() const { return blocks_; }
  bool empty() const { return blocks_ == 0 && state_ < 0 && cross_ < 0; }
  // As a slice finds it that was planned last (SequenceMemory::plan()). Its marks change when the
  // next one is.
  MemoryView view() const {
    return {.tables = tables_.get(),
            .stride = blocks_max_,
            .state = state_,
            .restored_from = checkpoints_.source,
            .marks = checkpoints_.planned(),
            .cross = cross_,
            .kept = kept_ * kPageTokens};
  }
  int32_t cross() const { return cross_; }  // Of CrossSlots; -1: none.
  // The first block whose page it still holds.
  int32_t first_block(int32_t group) const { return first_[static_cast<size_t>(group)]; }

  // Leading blocks that lie in the prefix cache.
  int32_t shared_blocks() const { return shared_; }
  // Its further blocks are shared as soon as they are full.
  bool sharing() const { return sharing_ == Sharing::kAll; }
  // Both have shared the same tokens so far.
  bool same_chain(const Holding& other) const {
    return shared_ == other.shared_ && key_ == other.key_;
  }

 private:
  friend class SequenceMemory;

  enum class Sharing : uint8_t {
    kNothing,
    kAll,
    kWindows,  // Pages of windows that blocks in the cache lack, [lacking_from_, lacking_until_).
  };

  std::span<const PageId> shared_pages() const {  // Of the spine.
    return {table(0), static_cast<size_t>(shared_)};
  }
  PageId* table(int32_t group) const { return tables_.get() + int64_t{group} * blocks_max_; }
  std::span<const PageId> pages(int32_t group) const {
    return {table(group) + first_block(group), table(group) + blocks_};
  }
  std::span<const PageId> hot_pages(int32_t group) const {
    return {table(group) + first_block(group), table(group) + hot_end_};
  }

  std::unique_ptr<PageId[]> tables_;
  std::array<int32_t, kGroupsMax> first_{};
  int32_t blocks_max_ = 0;
  int32_t blocks_ = 0;
  int32_t shared_ = 0;
  int32_t hot_end_ = 0;
  int32_t kept_ = 0;    // Leading blocks that others have computed.
  int32_t state_ = -1;  // -1: none.
  int32_t cross_ = -1;
  Checkpoints::Use checkpoints_;
  PrefixKey key_;  // Of the last shared block; the salt before the first.
  int32_t lacking_from_ = 0;
  int32_t lacking_until_ = 0;
  Sharing sharing_ = Sharing::kNothing;
  bool filled_ = false;  // From elsewhere, not by a sequence: it has no state.
};

}  // namespace weir::kv
