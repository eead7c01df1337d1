// MemoryLayout: which layers' pages live equally long. Those of a group are taken and given back
// together, so a group has one pool of page numbers and one page table a sequence.
//
// Group 0, the spine, is that of the layers without a window: its pages live as long as their
// sequence. It is there also where no layer is in it, with pages of zero bytes: numbers alone, by
// which all books are kept, because a sequence has a page of the spine for each of its blocks.
// There is one further group for each distinct window, the widest first.
//
// Where keys and values become codes (kv/format.h), pages of codes are those of the layer's group,
// and there is one more group, the last: hot pages, of numbers. A token reads its own block there,
// and the first one, to which much attention goes; others as codes. A hot page is one sequence's,
// also where that shares the block's codes, but for the first block's, which goes with the spine's.
//
// Threads: immutable.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "kernels/coded_ops.h"
#include "kv/block.h"
#include "kv/format.h"
#include "kv/need.h"

namespace weir::kv {

// Bytes of a number of a key or value.
inline int64_t element_bytes(kernels::FloatType type) {
  return type == kernels::FloatType::kF32 ? 4 : 2;
}

// Slots of states, where layers have them (StateNeed). The same slot is a sequence's, or a
// checkpoint's, in all such layers. And slots of what is attended to besides (CrossNeed), which are
// counted by themselves.
struct StateSlots {
  int32_t running = 0;      // The first ones: one for each sequence that runs.
  int32_t checkpoints = 0;  // After those (kv/checkpoints.h).
  int32_t cross = 0;

  int32_t count() const { return running + checkpoints; }  // Of states.
};

// Layers of more distinct windows than fit join the group of the next wider one: what that keeps is
// all that they see. Published models have one window, or two.
inline constexpr int32_t kWindowsMax = 3;
inline constexpr int32_t kGroupsMax = 1 + kWindowsMax + 1;

class MemoryLayout {
 public:
  struct Group {
    int32_t window = 0;      // 0: the spine.
    int64_t page_bytes = 0;  // One page, in all layers of the group.
    bool hot = false;        // Numbers that are no codes yet; its window is 1.
  };

  // An error names the layer whose need is none, or says why nothing can become codes.
  // `tape_tokens`: for how many tokens each state has a tape.
  static Result<MemoryLayout> make(std::vector<MemoryNeed> needs, Format format,
                                   int32_t tape_tokens = 0);

  std::span<const Group> groups() const { return groups_; }
  int32_t layer_count() const { return static_cast<int32_t>(needs_.size()); }
  int32_t group_of(int32_t layer) const { return group_of_[static_cast<size_t>(layer)]; }
  // -1: there is none.
  int32_t hot_group() const {
    return groups_.back().hot ? static_cast<int32_t>(groups_.size()) - 1 : -1;
  }
  // A layer's part of a page, without a base: where it has codes, of a hot page. Nothing is
  // remembered: zeros.
  kernels::KvPages pages_of(int32_t layer) const;
  // Its part of a page of codes, without a base; page_bytes is 0 where it has none.
  const kernels::CodedPages& codes_of(int32_t layer) const {
    return codes_[static_cast<size_t>(layer)];
  }
  // What a sequence's slot takes in this layer, in whole cache lines, and in all layers; 0: none.
  int64_t state_bytes(int32_t layer) const;
  int64_t state_bytes() const;
  // Without its tape: what a checkpoint has to have.
  int64_t checkpoint_bytes() const;
  // The tape is the end of it: so many tokens, each in whole cache lines.
  int32_t tape_tokens() const { return tape_tokens_; }
  int64_t tape_bytes(int32_t layer) const;  // Of one token.
  // What is attended to besides: a layer's part of a page, without a base, of which a slot has so
  // many; what a slot takes in all layers. Zeros, 0: nothing is. These are numbers in any format.
  kernels::KvPages cross_pages_of(int32_t layer) const;
  int32_t cross_pages() const { return kv::blocks_for(cross_rows()); }
  int32_t cross_rows() const;  // Of a slot: the most in a layer.
  int64_t cross_bytes() const;
  Format format() const { return format_; }

 private:
  std::vector<MemoryNeed> needs_;
  std::vector<int32_t> group_of_;
  std::vector<Group> groups_;
  Result<void> choose_codes();

  std::vector<kernels::CodedPages> codes_;  // By layer.
  Format format_;
  int32_t tape_tokens_ = 0;
};

// The first block that positions from `next` on can see.
constexpr int32_t first_block_seen(int32_t next, int32_t window) {
  return next < window ? 0 : (next - window + 1) / kPageTokens;
}

// What computes at once.
struct MemoryLoad {
  int32_t running_max = 0;  // Sequences.
  int32_t rows_max = 0;     // Tokens of a step, and of a slab beside it.
  int32_t loads = 0;        // Texts that come from disk (kv/disk), each of which holds a window.
};

// Of those, what texts hold that come from disk: W - 1 positions before the begin of a block.
constexpr int64_t window_pages_loaded(int32_t window, const MemoryLoad& load) {
  return int64_t{load.loads} * blocks_for(window);
}

// The most pages of a window that running sequences hold, and loads.
//
// Before its next position p, in block b, a sequence keeps the W - 1 positions before b's begin,
// which are at most pages(W) blocks, and b. With n rows that are planned from p on it holds at most
// floor((31 + n - 1) / 32) <= 1 + n / 32 blocks after b. Summed over the sequences this is what is
// returned. Nothing else is held, because each plan begins by giving back what windows have left.
constexpr int64_t window_pages_held(int32_t window, const MemoryLoad& load) {
  return int64_t{load.running_max} * (blocks_for(window) + 2) + load.rows_max / kPageTokens +
         window_pages_loaded(window, load);
}

// The pages of each group, where the spine has `blocks`: for a window what running sequences hold,
// and what the prefix cache may keep beside that; never more than the spine has, because a sequence
// holds at most one page of a window for each page of the spine (SequenceMemory, invariant 4), and
// what loads hold. So no sequence ever waits for a page of a window. Hot pages: what these hold.
std::vector<int32_t> page_counts(std::span<const MemoryLayout::Group> groups, int32_t blocks,
                                 const MemoryLoad& load);

}  // namespace weir::kv
