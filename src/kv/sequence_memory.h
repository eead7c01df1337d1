// SequenceMemory: what sequences remember, and its books: which pages each of them holds, which
// ones they share, and which ones only the prefix cache keeps for those to come. It is asked in
// tokens and accounts in blocks: a block has a page of the spine, and of each window's group
// (kv/layout.h) a page while a position that may still be computed can see it.
//
// A sequence's life with it:
//   begin()    when it is admitted;
//   match()    takes what the prefix cache has of its tokens, as long as nothing lies after that;
//   leave()    before each plan, for what its windows have left;
//   grow()     before tokens are planned;
//   plan()     when they are, where layers have states;
//   share()    then: full blocks are there for others from then on;
//   release()  at its end, or when it gives way.
//
// Windows. leave() comes before a plan, not after it: a slab that is planned with a step runs
// before it, and would write to pages that the step still reads.
// Pages that windows have left stay in the prefix cache while there is room. A match ends where all
// pages of the last window are there, so that a beginning is found also when longer texts have left
// it. Where more of the chain is known than that, the sequence computes the rest once more and
// gives the cache the pages of its last window, for the next one.
//
// Hot pages. Where keys and values become codes (kv/layout.h), a sequence holds hot pages for the
// blocks from its next token's on, as far as tokens are planned. They are never shared: a block
// that others have computed, but which this sequence computes again, has a hot page as well. A
// block that drafts fill keeps its hot page until its last token is known to be right, because
// leave() is told of certain positions only. The first block's stays, and is shared as a window's
// is that every token sees: a match needs it.
//
// States. Where layers have states (StateNeed), a sequence holds one slot from begin() to
// release(), and there are as many slots as sequences run at once, so that begin() never lacks one.
// A state cannot go back to an earlier token. So such sequences go on from the last checkpoint
// (kv/checkpoints.h) of the blocks that a match takes, and compute what comes after it once more,
// for the sake of their states alone: those blocks' pages are kept as they are (MemoryView::kept).
// So what is shared may reach further than what is computed, a sequence goes on sharing after it,
// and the texts' parting gets a checkpoint. Without room for checkpoints nothing is shared.
//
// Cross attention. Where layers have it (CrossNeed), a sequence holds a slot as well, which others
// may hold too, and there is one more than sequences run at once: for what is filled although all
// that wanted it have ended (sched/cross_fills.h). So attend_to() never lacks one.
//
// What comes from elsewhere (kv/disk). A holding is filled instead of computed: begin_fill() gives it
// what the cache knows of a text and memory for what is to come, end_fill() gives the cache what has
// come. It holds a page of the spine for each block, and of other groups what a sequence needs that
// goes on at its end.
//
// Threads: owned by the engine thread. Allocates at construction only.
//
// Invariants:
// (1) A block is held (by at least one sequence), cached (by the prefix cache alone) or free.
// (2) A sequence that holds a cached block holds that block's parent too. So every cached block
//     that no sequence holds can be evicted, and available() is exact.
// (3) A shared block is full, and is not written again.
// (4) Sequences hold at most as many pages of a window's group as blocks. A sequence gets a page of
//     a window with one of the spine: both fresh, or both of one entry of the cache. An entry's
//     page of the window changes only when no sequence holds the old one. So of those that hold a
//     page of the spine all hold one page of the window, or none. What is filled may have a fresh one
//     for an entry that has none, and so one more for each block of a window.
// (5) A page of a window that only the prefix cache keeps can be evicted alone. So a pool of a
//     window with as many pages as the spine and what is filled, or as window_pages_held() says,
//     never lacks one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kv/block.h"
#include "kv/checkpoints.h"
#include "kv/cross_slots.h"
#include "kv/holding.h"
#include "kv/kv_cache.h"
#include "kv/page_pool.h"
#include "kv/prefix_cache.h"
#include "kv/state_pool.h"

namespace weir::kv {

class SequenceMemory {
 public:
  // The first group is the spine.
  SequenceMemory(std::span<const PageGroup> groups, bool prefix_cache,
                 const StateSlots& slots = {});
  SequenceMemory(const SequenceMemory&) = delete;
  SequenceMemory& operator=(const SequenceMemory&) = delete;

  // How many blocks there are, and how many of them a sequence may be given now.
  int32_t blocks() const { return spine().page_count(); }
  int32_t available() const { return blocks() - held_; }
  // Blocks that sequences hold, each counted once, and those that only the prefix cache keeps.
  int32_t held() const { return held_; }
  int32_t cached() const { return available() - spine().free_count(); }
  // The blocks of `holding` that no other sequence holds.
  int32_t own_blocks(const Holding& holding) const;
  // Pages of a window's group that sequences hold, and those that only the prefix cache keeps.
  int32_t held_pages(int32_t group) const;
  int32_t cached_pages(int32_t group) const {
    return cache_ ? cache_->side(group).idle_count() : 0;
  }
  bool has_states() const { return states_.count() > 0; }
  // Slots of checkpoints that are in use.
  int32_t checkpoints() const {
    return checkpoints_ ? checkpoints_->count() - checkpoints_->free_count() : 0;
  }

  // The sequence of this holding shares with those of the same salt. `prompt_tokens`: where states
  // have a checkpoint. REQUIRES: the holding is empty.
  void begin(Holding& holding, const PrefixKey& salt, int32_t prompt_tokens = 0);
  // It attends to this besides. What had the slot before is forgotten, so it is taken last, once all
  // else is there. REQUIRES: the holding has begun, and attends to nothing.
  void attend_to(Holding& holding, const CrossKey& key);

  // How many of the leading blocks of `keys` a sequence of this salt would find in the cache, one
  // page of the spine each; `chain`, as long as those that are looked for, gets the key of each, and
  // `pages`, as long, of which groups each has a page, or a checkpoint: a bit for each pool.
  int32_t known_blocks(const PrefixKey& salt, const TokenKeys& keys, std::span<PrefixKey> chain,
                       std::span<uint8_t> pages) const;

  // Takes from the prefix cache what continues the holding, up to `tokens_max` tokens of `keys` in
  // all, whole blocks. Of its tokens `computed` are; returns how many are then. REQUIRES: so many
  // tokens are known.
  int32_t match(Holding& holding, const TokenKeys& keys, int32_t computed, int32_t tokens_max);

  // Positions before `next` are computed, or planned in steps that run before any that is planned
  // from here on, and none of them will be computed again: pages that no other position sees go.
  void leave(Holding& holding, int32_t next);

  // Memory for `tokens` tokens in all. REQUIRES: the blocks it takes are available().
  void grow(Holding& holding, int32_t tokens);

  // Positions [begin, end) are planned in one slice, whose view() the holding has from here on.
  // REQUIRES: the tokens before are known.
  void plan(Holding& holding, const TokenKeys& keys, int32_t begin, int32_t end) {
    if (checkpoints_) plan_checkpoints(holding, keys, begin, end);
  }
  // That slice leaves a checkpoint with which `holding` would go on, of whose tokens `computed`
  // are.
  bool leaves_for(const Holding& planned, int32_t begin, int32_t end, const Holding& holding,
                  int32_t computed) const;

  // The first `tokens` tokens are computed, or planned and known: blocks that they fill are shared.
  // If another sequence has shared the same tokens, or the chain is broken, this one shares no more
  // blocks for good: to go on after a block that it does not hold would break invariant 2.
  void share(Holding& holding, const TokenKeys& keys, int32_t tokens);

  // Gives everything back. What it shared counts as used now.
  void release(Holding& holding);

  // The holding is to be filled with blocks of `keys`, one for each of `wanted`, which says of which
  // groups each gets a fresh page: those of the `known` first ones that known_blocks() has just
  // not found and that a sequence needs. False, and the holding is empty: there is no slot for a
  // checkpoint, or not that memory with `spare` blocks besides.
  bool begin_fill(Holding& holding, const PrefixKey& salt, const TokenKeys& keys, int32_t known,
                  std::span<const uint8_t> wanted, int32_t spare);
  // The slot of KvCache that a filled holding has for the checkpoint at its end.
  // REQUIRES: it was wanted.
  static int32_t filled_state(const Holding& holding) {
    return holding.checkpoints_.planned().front().slot;
  }
  // The first `end` blocks have come, with all that was wanted of them. Returns how many of the
  // holding's blocks are the cache's then. It is to be released.
  int32_t end_fill(Holding& holding, const TokenKeys& keys, int32_t end);

  // Something in shared blocks may be wrong: no sequence takes a block from the cache that is in it
  // now. stop_sharing() is for each sequence that has begun.
  void forget_shared();
  static void stop_sharing(Holding& holding) { holding.sharing_ = Holding::Sharing::kNothing; }

  // What sequences attend to besides.
  CrossSlots& cross() { return cross_; }
  // The sequence's is there, if it attends to anything.
  bool cross_filled(const Holding& holding) const {
    return holding.cross() < 0 || cross_.filled(holding.cross());
  }

  // For the part that gives unused memory back.
  std::span<PagePool> pools() { return pools_; }
  PrefixCache* cache() { return cache_ ? &*cache_ : nullptr; }

  // Walks everything and checks the invariants. `filling`: a slot that is held besides, because it is
  // filled, or -1. REQUIRES: `holdings` are all others that hold something.
  void check(std::span<const Holding* const> holdings, int32_t filling = -1) const;

 private:
  // What match() has found of the chain.
  struct Chain {
    PrefixKey key;         // Of its last block.
    PrefixKey usable_key;  // Of the last block that a match may end with.
    int32_t blocks = 0;
    int32_t usable = 0;
    int32_t computed = 0;  // Tokens that need not be computed if it ends with the last block,
    int32_t usable_computed = 0;  // and with that one.
  };

  PagePool& spine() { return pools_.front(); }
  const PagePool& spine() const { return pools_.front(); }
  int32_t group_count() const { return static_cast<int32_t>(windows_.size()); }
  // The spine, and windows.
  int32_t shared_groups() const { return hot_ > 0 ? hot_ : group_count(); }
  int32_t window(int32_t group) const { return windows_[static_cast<size_t>(group)]; }
  PagePool& pool(int32_t group) { return pools_[static_cast<size_t>(group)]; }
  const PagePool& pool(int32_t group) const { return pools_[static_cast<size_t>(group)]; }

  Chain follow(const Holding& holding, const TokenKeys& keys, int32_t computed,
               int32_t blocks_max) const;
  int32_t last_checkpoint(const Holding& holding, int32_t computed) const;
  void plan_checkpoints(Holding& holding, const TokenKeys& keys, int32_t begin, int32_t end);
  void take(Holding& holding, const Chain& chain);
  bool first_is_there(const Holding& holding) const;
  void lend_first(Holding& holding);
  void leave_hot(Holding& holding, int32_t block);
  void grow_hot(Holding& holding, int32_t blocks);
  void share_windows(const Holding& holding, int32_t block, PageId entry, bool wanted);
  void share_lacking(Holding& holding, const BlockTokens& tokens);
  void put_aside(int32_t group, PageId entry, PageId page, bool wanted);
  int32_t holders(PageId page) const;
  void hold(PageId page);
  void drop(PageId page);
  void drop_pages(Holding& holding, int32_t group, int32_t until, SideCache::Way way);
  void leave_window(Holding& holding, int32_t group, int32_t until);
  void hold_known(Holding& holding, const TokenKeys& keys, int32_t blocks);
  void take_fresh(Holding& holding, int32_t group, int32_t first, int32_t end);
  void release_page(int32_t group, PageId page, SideCache::Way way);
  void check_window(int32_t group, std::span<const Holding* const> holdings) const;
  void check_hot(std::span<const Holding* const> holdings) const;
  void check_states(std::span<const Holding* const> holdings) const;
  void check_cross(std::span<const Holding* const> holdings, int32_t filling) const;

  std::vector<int32_t> windows_;  // By group; the spine's is 0.
  std::vector<PagePool> pools_;   // By group, then that of checkpoints.
  std::optional<PrefixCache> cache_;
  StatePool states_;
  std::optional<Checkpoints> checkpoints_;
  CrossSlots cross_;
  int32_t hot_ = 0;  // The group of hot pages; 0: there is none.
  int32_t held_ = 0;
};

}  // namespace weir::kv
