// PageMemory: the memory of pages and states as its books see it: how much there is of what, and
// that some of it may go back. Where it lies is its owner's business.
//
// Threads: the engine thread, but for take().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/ops.h"
#include "kv/layout.h"

namespace weir::kv {

// A group of layers whose pages live equally long (kv/layout.h).
struct PageGroup {
  int32_t window = 0;  // 0: the spine.
  int32_t pages = 0;
  bool hot = false;  // Numbers of blocks that are no codes (kv/layout.h).
};

class PageMemory {
 public:
  virtual ~PageMemory() = default;

  virtual std::span<const PageGroup> groups() const = 0;
  // None: no layer has a state.
  virtual const StateSlots& state_slots() const = 0;
  // For how many tokens that may be wrong states have a tape (StateNeed).
  virtual int32_t tape_tokens() const = 0;
  virtual Format format() const = 0;
  virtual int64_t bytes() const = 0;

  // What follows takes this number for a group as well: its pages are the slots of checkpoints.
  int32_t checkpoint_group() const { return static_cast<int32_t>(groups().size()); }
  virtual int32_t page_count(int32_t group) const = 0;
  virtual int64_t bytes_of_page(int32_t group) const = 0;  // In all layers of the group.
  // The memory of `count` pages of a group from `first` on goes back to the system: they hold
  // zeros, and take memory again, when they are next written. REQUIRES: no pass reads or writes
  // them now.
  virtual void give_back(int32_t group, int32_t first, int32_t count) = 0;
  // The memory of such pages is taken from the system now, not when they are first written; what
  // they hold stays as it is. Any thread, at any time.
  virtual void take(int32_t group, int32_t first, int32_t count) = 0;
  // Memory comes and goes in huge pages: how many pages of the group one of those reaches over.
  virtual int32_t pages_in_huge_page(int32_t group) const = 0;
  // The states of all running sequences. REQUIRES: none has begun.
  virtual void give_back_states() = 0;
  // The slots of what is attended to besides. REQUIRES: none is in use.
  virtual void give_back_cross() = 0;
  // A page as bytes, kept_bytes() of them: what all layers of the group have of it, one layer after
  // another; of a checkpoint the states without their tapes, which nothing reads there. Any thread.
  // REQUIRES: no pass writes the page now, nor, of copy_in(), reads it.
  virtual int64_t kept_bytes(int32_t group) const = 0;
  virtual void copy_out(int32_t group, int32_t page, std::span<std::byte> to) const = 0;
  virtual void copy_in(int32_t group, int32_t page, std::span<const std::byte> from) = 0;
};

}  // namespace weir::kv
