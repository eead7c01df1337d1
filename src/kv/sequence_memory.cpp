#include "kv/sequence_memory.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/check.h"

namespace weir::kv {

SequenceMemory::SequenceMemory(std::span<const PageGroup> groups, bool prefix_cache,
                               int32_t state_slots)
    : states_(state_slots) {
  CHECK(!groups.empty() && std::ssize(groups) <= kGroupsMax && groups.front().window == 0);
  pools_.reserve(groups.size());  // The cache refers to them.
  for (const PageGroup& group : groups) {
    CHECK(group.pages <= groups.front().pages);
    windows_.push_back(group.window);
    pools_.emplace_back(group.pages);
  }
  if (prefix_cache && state_slots == 0) cache_.emplace(std::span(pools_));
}

int32_t SequenceMemory::own_blocks(const Holding& holding) const {
  return static_cast<int32_t>(
      std::ranges::count_if(holding.pages(0), [this](PageId page) { return holders(page) == 1; }));
}

int32_t SequenceMemory::held_pages(int32_t group) const {
  return pool(group).page_count() - pool(group).free_count() - cached_pages(group);
}

void SequenceMemory::begin(Holding& holding, const PrefixKey& salt) {
  CHECK(holding.empty() && holding.shared_ == 0 && salt.pages == 0);
  if (states_.count() > 0) holding.state_ = states_.take();
  holding.key_ = salt;
  holding.lacking_from_ = holding.lacking_until_ = 0;
  holding.sharing_ = cache_ ? Holding::Sharing::kAll : Holding::Sharing::kNothing;
}

int32_t SequenceMemory::match(Holding& holding, const TokenKeys& keys, int32_t tokens_max) {
  if (!holding.sharing() || holding.shared_ < holding.blocks_) return 0;
  const int32_t before = holding.blocks_;
  const Chain chain = follow(holding, keys, tokens_max / kPageTokens);
  // Computed once more: the last window before the place where the texts part.
  holding.lacking_from_ = holding.lacking_until_ = 0;
  if (chain.blocks > chain.usable) {
    holding.lacking_until_ = chain.blocks;
    holding.lacking_from_ = first_block_seen(chain.blocks * kPageTokens, windows_[1]);
  }
  if (chain.usable > before) take(holding, chain);
  return (holding.blocks_ - before) * kPageTokens;
}

// How far the cache knows the tokens, and how much of that a match may take: it ends where all
// pages of the last window are there, of each group. Pages of the spine that follow the holding's
// stand in its table then, held by nobody yet.
SequenceMemory::Chain SequenceMemory::follow(const Holding& holding, const TokenKeys& keys,
                                             int32_t blocks_max) const {
  CHECK(blocks_max <= holding.blocks_max_);
  Chain chain = {.key = holding.key_,
                 .usable_key = holding.key_,
                 .blocks = holding.blocks_,
                 .usable = holding.blocks_};
  // By group: from this block on all pages are there.
  std::array<int32_t, kGroupsMax> there_from = holding.first_;
  PageId* const table = holding.table(0);
  for (; chain.blocks < blocks_max; ++chain.blocks) {
    BlockTokens tokens;
    keys.read(chain.blocks, tokens);
    const PageId parent = chain.blocks == 0 ? -1 : table[chain.blocks - 1];
    const PrefixCache::Entry next = cache_->next(chain.key, parent, tokens);
    if (next.page < 0) break;
    table[chain.blocks] = next.page;
    chain.key = next.key;
    const int32_t end = chain.blocks + 1;
    bool usable = true;
    for (int32_t g = 1; g < group_count(); ++g) {
      int32_t& from = there_from[static_cast<size_t>(g)];
      if (cache_->window(g).page_of(next.page) < 0) from = end;
      usable = usable && from <= first_block_seen(end * kPageTokens, window(g));
    }
    if (!usable) continue;
    chain.usable = end;
    chain.usable_key = chain.key;
  }
  return chain;
}

// The usable blocks become the holding's. What its windows have left by then goes before the new
// pages come.
void SequenceMemory::take(Holding& holding, const Chain& chain) {
  const int32_t before = holding.blocks_;
  const PageId* const spine_table = holding.table(0);
  for (int32_t g = 1; g < group_count(); ++g) {
    const int32_t first = first_block_seen(chain.usable * kPageTokens, window(g));
    drop_pages(holding, g, std::min(first, before), WindowCache::Way::kLeft);
    holding.first_[static_cast<size_t>(g)] = first;
    for (int32_t i = std::max(first, before); i < chain.usable; ++i)
      holding.table(g)[i] = cache_->window(g).lend(spine_table[i]);
  }
  for (int32_t i = before; i < chain.usable; ++i) hold(spine_table[i]);
  holding.blocks_ = holding.shared_ = chain.usable;
  holding.key_ = chain.usable_key;
  cache_->touch(holding.key_);
}

// Counted from the begin of the block, so that a match may end there.
void SequenceMemory::leave(Holding& holding, int32_t next) {
  const int32_t begin = next / kPageTokens * kPageTokens;
  for (int32_t g = 1; g < group_count(); ++g)
    drop_pages(holding, g, std::min(first_block_seen(begin, window(g)), holding.blocks_),
               WindowCache::Way::kLeft);
}

void SequenceMemory::grow(Holding& holding, int32_t tokens) {
  const int32_t missing = blocks_for(tokens) - holding.blocks_;
  if (missing <= 0) return;
  CHECK(missing <= holding.blocks_max_ - holding.blocks_);
  for (int32_t g = 0; g < group_count(); ++g) {
    if (const int32_t lack = missing - pool(g).free_count(); lack > 0 && cache_)
      g == 0 ? cache_->evict(lack) : cache_->window(g).evict(lack);
    const std::span<const PageId> held = holding.pages(g);
    const std::span added(holding.table(g) + holding.blocks_, static_cast<size_t>(missing));
    CHECK(pool(g).allocate(added, held.empty() ? -1 : held.back()));
  }
  held_ += missing;
  holding.blocks_ += missing;
}

void SequenceMemory::share(Holding& holding, const TokenKeys& keys, int32_t tokens) {
  BlockTokens block;
  while (holding.sharing_ != Holding::Sharing::kNothing &&
         (holding.shared_ + 1) * kPageTokens <= tokens) {
    keys.read(holding.shared_, block);
    if (holding.sharing_ == Holding::Sharing::kWindows) {
      share_lacking(holding, block);
      continue;
    }
    const PageId page = holding.pages(0)[static_cast<size_t>(holding.shared_)];
    const PrefixCache::Entry entry = cache_->insert(holding.key_, block, page);
    if (entry.page != page) {
      holding.sharing_ = Holding::Sharing::kWindows;
      continue;
    }
    share_windows(holding, holding.shared_, page, /*wanted=*/false);
    holding.key_ = entry.key;
    ++holding.shared_;
  }
}

// The pages that the holding has of this block, unless the entry has its own.
void SequenceMemory::share_windows(const Holding& holding, int32_t block, PageId entry,
                                   bool wanted) {
  for (int32_t g = 1; g < group_count(); ++g) {
    if (block < holding.first_block(g)) continue;
    const PageId page = holding.table(g)[block];
    if (!cache_->window(g).contains(page)) cache_->window(g).put(entry, page, wanted);
  }
}

// The next block is another's in the cache; pages of windows that it lacks are given to it.
void SequenceMemory::share_lacking(Holding& holding, const BlockTokens& tokens) {
  const PageId parent = holding.shared_ == 0 ? -1 : cache_->find(holding.key_);
  const bool known =
      holding.shared_ < holding.lacking_until_ && (holding.shared_ == 0 || parent >= 0);
  const PrefixCache::Entry entry =
      known ? cache_->next(holding.key_, parent, tokens) : PrefixCache::Entry();
  if (entry.page < 0) {
    holding.sharing_ = Holding::Sharing::kNothing;
    return;
  }
  if (holding.shared_ >= holding.lacking_from_)
    share_windows(holding, holding.shared_, entry.page, /*wanted=*/true);
  holding.key_ = entry.key;
  ++holding.shared_;
}

void SequenceMemory::rollback(Holding& holding, int32_t tokens) {
  CHECK(tokens >= holding.shared_ * kPageTokens && blocks_for(tokens) <= holding.blocks_);
  CHECK(states_.count() == 0);
  const int32_t blocks = blocks_for(tokens);
  for (int32_t g = 0; g < group_count(); ++g) {
    CHECK(g == 0 || holding.first_block(g) <= first_block_seen(tokens, window(g)));
    for (int32_t i = std::max(blocks, holding.first_block(g)); i < holding.blocks_; ++i)
      release_page(g, holding.table(g)[i], WindowCache::Way::kEnded);
  }
  holding.blocks_ = blocks;
}

void SequenceMemory::release(Holding& holding) {
  if (holding.shared_ > 0) cache_->touch(holding.key_);
  for (int32_t g = 0; g < group_count(); ++g) {
    drop_pages(holding, g, holding.blocks_, WindowCache::Way::kEnded);
    holding.first_[static_cast<size_t>(g)] = 0;
  }
  holding.blocks_ = holding.shared_ = 0;
  if (holding.state_ >= 0) states_.give_back(std::exchange(holding.state_, -1));
}

void SequenceMemory::forget_shared() {
  if (cache_) cache_->clear();
}

// The cache has one reference to a page that it has; all others are sequences'.
int32_t SequenceMemory::holders(PageId page) const {
  return spine().refs(page) - (cache_ && cache_->contains(page) ? 1 : 0);
}

void SequenceMemory::hold(PageId page) {
  spine().retain(page);
  if (holders(page) == 1) ++held_;
}

void SequenceMemory::drop(PageId page) {
  const int32_t others = holders(page) - 1;
  CHECK(others >= 0);
  if (others == 0) --held_;
  spine().release(page);
}

// Those of the blocks before `until`.
void SequenceMemory::drop_pages(Holding& holding, int32_t group, int32_t until,
                                WindowCache::Way way) {
  int32_t& first = holding.first_[static_cast<size_t>(group)];
  for (; first < until; ++first) release_page(group, holding.table(group)[first], way);
}

void SequenceMemory::release_page(int32_t group, PageId page, WindowCache::Way way) {
  if (group == 0) {
    drop(page);
  } else if (cache_) {
    cache_->window(group).release(page, way);
  } else {
    pool(group).release(page);
  }
}

void SequenceMemory::check(std::span<const Holding* const> holdings) const {
  if (cache_) cache_->check();
  for (const PagePool& pool : pools_) pool.check();
  std::vector<int32_t> holders(static_cast<size_t>(blocks()), 0);
  for (const Holding* holding : holdings) {
    CHECK(holding->shared_ <= holding->blocks_ && holding->blocks_ <= holding->blocks_max_);
    CHECK(holding->key_.pages == holding->shared_ && holding->first_block(0) == 0);
    for (const PageId page : holding->pages(0)) ++holders[static_cast<size_t>(page)];
  }
  CHECK(held_ == std::ranges::count_if(holders, [](int32_t n) { return n > 0; }));
  int32_t cached = 0;
  for (PageId page = 0; page < blocks(); ++page) {
    CHECK(holders[static_cast<size_t>(page)] == this->holders(page));
    cached += spine().refs(page) - holders[static_cast<size_t>(page)];
  }
  CHECK(cached == (cache_ ? cache_->page_count() : 0));
  CHECK(available() == spine().free_count() + (cache_ ? cache_->evictable_count() : 0));
  for (int32_t g = 1; g < group_count(); ++g) check_window(g, holdings);
  std::vector<int32_t> slots(static_cast<size_t>(states_.count()), 0);
  for (const Holding* holding : holdings) {
    CHECK((holding->state_ >= 0) == (states_.count() > 0));
    if (holding->state_ >= 0) CHECK(++slots[static_cast<size_t>(holding->state_)] == 1);
  }
  CHECK(std::ssize(holdings) == states_.count() - states_.free_count() || states_.count() == 0);
}

void SequenceMemory::check_window(int32_t group, std::span<const Holding* const> holdings) const {
  const PagePool& pages = pool(group);
  std::vector<int32_t> holders(static_cast<size_t>(pages.page_count()), 0);
  std::vector<PageId> with_block(static_cast<size_t>(blocks()), -1);
  for (const Holding* holding : holdings) {
    CHECK(holding->first_block(group) <= holding->blocks_);
    for (int32_t i = holding->first_block(group); i < holding->blocks_; ++i) {
      const PageId page = holding->table(group)[i];
      ++holders[static_cast<size_t>(page)];
      PageId& other = with_block[static_cast<size_t>(holding->table(0)[i])];
      CHECK(other < 0 || other == page);
      other = page;
    }
  }
  for (PageId page = 0; page < pages.page_count(); ++page) {
    const bool cached = cache_ && cache_->window(group).contains(page);
    CHECK(pages.refs(page) == holders[static_cast<size_t>(page)] + (cached ? 1 : 0));
  }
  CHECK(held_pages(group) == std::ranges::count_if(holders, [](int32_t n) { return n > 0; }));
  CHECK(held_pages(group) <= held_);
}

}  // namespace weir::kv
