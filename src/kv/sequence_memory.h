// SequenceMemory: what sequences remember, and its books: which pages each of them holds, which
// ones they share, and which ones only the prefix cache keeps for those to come. It is asked in
// tokens and accounts in blocks.
//
// A sequence's life with it:
//   begin()    when it is admitted;
//   match()    takes what the prefix cache has of its tokens;
//   grow()     before tokens are planned;
//   share()    when they are: full blocks are there for others from then on;
//   rollback() where planned tokens turn out to be none of its;
//   release()  at its end, or when it gives way.
//
// Threads: owned by the engine thread. Allocates at construction only.
//
// Invariants:
// (1) A block is held (by at least one sequence), cached (by the prefix cache alone) or free.
// (2) A sequence that holds a cached block holds that block's parent too. So every cached block
//     that no sequence holds can be evicted, and available() is exact.
// (3) A shared block is full, and is not written again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "kv/block.h"
#include "kv/holding.h"
#include "kv/page_pool.h"
#include "kv/prefix_cache.h"

namespace weir::kv {

class SequenceMemory {
 public:
  SequenceMemory(int32_t blocks, bool prefix_cache);
  SequenceMemory(const SequenceMemory&) = delete;
  SequenceMemory& operator=(const SequenceMemory&) = delete;

  // How many blocks there are, and how many of them a sequence may be given now.
  int32_t blocks() const { return pool_.page_count(); }
  int32_t available() const { return blocks() - held_; }
  // Blocks that sequences hold, each counted once, and those that only the prefix cache keeps.
  int32_t held() const { return held_; }
  int32_t cached() const { return available() - pool_.free_count(); }
  // The blocks of `holding` that no other sequence holds.
  int32_t own_blocks(const Holding& holding) const;

  // The sequence of this holding shares with those of the same salt. REQUIRES: it is empty.
  void begin(Holding& holding, const PrefixKey& salt) const;

  // Takes from the prefix cache what continues the holding, up to `tokens_max` tokens of `keys` in
  // all, whole blocks. Returns how many tokens that is. REQUIRES: so many tokens are known; the
  // holding has memory for whole blocks of its tokens and no more.
  int32_t match(Holding& holding, const TokenKeys& keys, int32_t tokens_max);

  // Memory for `tokens` tokens in all. REQUIRES: the blocks it takes are available().
  void grow(Holding& holding, int32_t tokens);

  // The first `tokens` tokens are computed, or planned and known: blocks that they fill are shared.
  // If another sequence has shared the same tokens, or the chain is broken, this one shares no more
  // for good: to go on after a block that it does not hold would break invariant 2.
  void share(Holding& holding, const TokenKeys& keys, int32_t tokens);

  // Gives back what lies after the first `tokens` tokens. REQUIRES: no more than those is shared.
  void rollback(Holding& holding, int32_t tokens);

  // Gives everything back. What it shared counts as used now.
  void release(Holding& holding);

  // Something in shared blocks may be wrong: nobody takes a block from the cache that is in it now.
  // No sequence that has begun shares any more: `running` are their holdings.
  void forget_shared();
  static void stop_sharing(Holding& holding) { holding.sharing_ = false; }

  // For who gives unused memory back.
  PagePool& pool() { return pool_; }
  PrefixCache* cache() { return cache_ ? &*cache_ : nullptr; }

  // Walks everything and checks the invariants. REQUIRES: `holdings` are all that hold something.
  void check(std::span<const Holding* const> holdings) const;

 private:
  int32_t holders(PageId page) const;
  void hold(PageId page);
  void drop(PageId page);

  PagePool pool_;
  std::optional<PrefixCache> cache_;
  int32_t held_ = 0;
};

}  // namespace weir::kv
