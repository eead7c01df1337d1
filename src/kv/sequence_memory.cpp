#include "kv/sequence_memory.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/check.h"

namespace weir::kv {

SequenceMemory::SequenceMemory(std::span<const PageGroup> groups, bool prefix_cache,
                               const StateSlots& slots)
    : states_(slots.running), cross_(slots.cross) {
  CHECK(!groups.empty() && std::ssize(groups) <= kGroupsMax && groups.front().window == 0);
  pools_.reserve(groups.size() + 1);  // The cache refers to them.
  for (const PageGroup& group : groups) {
    CHECK(hot_ == 0);
    if (group.hot) hot_ = static_cast<int32_t>(windows_.size());
    windows_.push_back(group.window);
    pools_.emplace_back(group.pages);
  }
  if (!prefix_cache || (has_states() && slots.checkpoints == 0)) return;
  if (has_states()) pools_.emplace_back(slots.checkpoints);
  cache_.emplace(std::span(pools_));
  if (has_states()) checkpoints_.emplace(slots.running, pools_.back(), cache_->side(group_count()));
}

int32_t SequenceMemory::own_blocks(const Holding& holding) const {
  return static_cast<int32_t>(
      std::ranges::count_if(holding.pages(0), [this](PageId page) { return holders(page) == 1; }));
}

int32_t SequenceMemory::held_pages(int32_t group) const {
  return pool(group).page_count() - pool(group).free_count() - cached_pages(group);
}

void SequenceMemory::begin(Holding& holding, const PrefixKey& salt, int32_t prompt_tokens) {
  CHECK(holding.empty() && holding.shared_ == 0 && salt.pages == 0);
  if (has_states()) holding.state_ = states_.take();
  Checkpoints::begin(holding.checkpoints_, prompt_tokens);
  holding.key_ = salt;
  holding.lacking_from_ = holding.lacking_until_ = 0;
  holding.sharing_ = cache_ ? Holding::Sharing::kAll : Holding::Sharing::kNothing;
}

void SequenceMemory::attend_to(Holding& holding, const CrossKey& key) {
  CHECK(holding.cross_ < 0);
  holding.cross_ = cross_.take(key);
}

int32_t SequenceMemory::known_blocks(const PrefixKey& salt, const TokenKeys& keys,
                                     std::span<PrefixKey> chain,
                                     std::span<uint8_t> pages) const {
  CHECK(chain.size() == pages.size());
  PrefixKey before = salt;
  PageId parent = -1;
  int32_t known = 0;
  for (int32_t block = 0; block < std::ssize(chain); ++block) {
    BlockTokens tokens;
    keys.read(block, tokens);
    PrefixKey& key = chain[static_cast<size_t>(block)];
    uint8_t& there = pages[static_cast<size_t>(block)] = 0;
    if (known == block && cache_) {
      const PrefixCache::Entry next = cache_->next(before, parent, tokens);
      key = next.key;
      parent = next.page;
      if (next.page >= 0) {
        ++known;
        for (int32_t p = 0; p < std::ssize(pools_); ++p)
          if (cache_->page_of(next.page, p) >= 0) there |= static_cast<uint8_t>(1 << p);
      }
    } else {
      key = PrefixCache::child(before, tokens);
    }
    before = key;
  }
  return known;
}

int32_t SequenceMemory::match(Holding& holding, const TokenKeys& keys, int32_t computed,
                              int32_t tokens_max) {
  if (!holding.sharing() || holding.shared_ < holding.blocks_ ||
      computed > holding.shared_ * kPageTokens)
    return computed;
  const Chain chain = follow(holding, keys, computed, tokens_max / kPageTokens);
  if (hot_ > 0 && chain.usable > 0) {
    if (holding.hot_end_ == 0) lend_first(holding);
    leave_hot(holding, chain.usable_computed / kPageTokens);
  }
  const bool lacks_first = chain.blocks > 0 && !first_is_there(holding);
  // Computed once more: the last window before the place where the texts part, or all.
  holding.lacking_from_ = holding.lacking_until_ = 0;
  if (chain.blocks > chain.usable) {
    holding.lacking_until_ = chain.blocks;
    holding.lacking_from_ =
        lacks_first ? 0 : first_block_seen(chain.blocks * kPageTokens, windows_[1]);
  }
  if (chain.usable > holding.blocks_) take(holding, chain);
  if (checkpoints_ && chain.usable_computed > computed) {
    const int32_t block = chain.usable_computed / kPageTokens - 1;
    checkpoints_->restore(holding.checkpoints_, holding.table(0)[block]);
  }
  if (chain.usable_computed < chain.usable * kPageTokens)
    holding.checkpoints_.parted = chain.usable * kPageTokens;
  return chain.usable_computed;
}

// How far the cache knows the tokens, and how much of that a match may take: it ends where all
// pages of the last window are there, of each group. Pages of the spine that follow the holding's
// stand in its table then, held by no sequence yet.
SequenceMemory::Chain SequenceMemory::follow(const Holding& holding, const TokenKeys& keys,
                                             int32_t computed, int32_t blocks_max) const {
  CHECK(blocks_max <= holding.blocks_max_);
  Chain chain = {.key = holding.key_,
                 .usable_key = holding.key_,
                 .blocks = holding.blocks_,
                 .usable = holding.blocks_,
                 .computed = last_checkpoint(holding, computed)};
  chain.usable_computed = chain.computed;
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
    if (!has_states() || checkpoints_->has(next.page)) chain.computed = end * kPageTokens;
    bool usable = first_is_there(holding);
    for (int32_t g = 1; g < shared_groups(); ++g) {
      int32_t& from = there_from[static_cast<size_t>(g)];
      if (cache_->side(g).page_of(next.page) < 0) from = end;
      usable = usable && from <= first_block_seen(chain.computed, window(g));
    }
    if (!usable) continue;
    chain.usable = end;
    chain.usable_computed = chain.computed;
    chain.usable_key = chain.key;
  }
  return chain;
}

// Up to where nothing more need be computed of the holding's own blocks: others may have left a
// checkpoint in them since.
int32_t SequenceMemory::last_checkpoint(const Holding& holding, int32_t computed) const {
  if (!checkpoints_) return computed;
  for (int32_t block = holding.shared_; block * kPageTokens > computed; --block)
    if (checkpoints_->has(holding.table(0)[block - 1])) return block * kPageTokens;
  return computed;
}

// What the slice before has left is shared first: since then its tokens have become known.
void SequenceMemory::plan_checkpoints(Holding& holding, const TokenKeys& keys, int32_t begin,
                                      int32_t end) {
  share(holding, keys, begin);
  Checkpoints::Use& use = holding.checkpoints_;
  if (holding.sharing()) {
    checkpoints_->plan(use, begin, end, holding.shared_pages());
  } else {
    checkpoints_->plan_without(use);
  }
}

bool SequenceMemory::leaves_for(const Holding& planned, int32_t begin, int32_t end,
                                const Holding& holding, int32_t computed) const {
  if (!checkpoints_ || !planned.sharing() || !holding.sharing()) return false;
  const int32_t known = std::min(planned.shared_, holding.shared_) * kPageTokens;
  const int32_t place = Checkpoints::last_place(planned.checkpoints_, std::max(begin, computed),
                                                std::min(end, known));
  if (place == 0) return false;
  const int32_t block = place / kPageTokens - 1;
  return planned.table(0)[block] == holding.table(0)[block];
}

// The usable blocks become the holding's. What its windows have left by then goes before the new
// pages come.
void SequenceMemory::take(Holding& holding, const Chain& chain) {
  const int32_t before = holding.blocks_;
  const PageId* const spine_table = holding.table(0);
  for (int32_t g = 1; g < shared_groups(); ++g) {
    const int32_t first = first_block_seen(chain.usable_computed, window(g));
    leave_window(holding, g, std::min(first, before));
    holding.first_[static_cast<size_t>(g)] = first;
    for (int32_t i = std::max(first, before); i < chain.usable; ++i)
      holding.table(g)[i] = cache_->side(g).lend(spine_table[i]);
  }
  for (int32_t i = before; i < chain.usable; ++i) hold(spine_table[i]);
  holding.blocks_ = holding.shared_ = holding.kept_ = chain.usable;
  holding.key_ = chain.usable_key;
  cache_->take(holding.key_);
}

// Counted from the begin of the block, so that a match may end there.
void SequenceMemory::leave(Holding& holding, int32_t next) {
  const int32_t begin = next / kPageTokens * kPageTokens;
  for (int32_t g = 1; g < shared_groups(); ++g)
    leave_window(holding, g, std::min(first_block_seen(begin, window(g)), holding.blocks_));
  if (hot_ > 0) leave_hot(holding, begin / kPageTokens);
}

// The blocks before `until`: on the way, but for those that a text needs that ends with the prompt.
void SequenceMemory::leave_window(Holding& holding, int32_t group, int32_t until) {
  const int32_t end = holding.checkpoints_.prompt_end;
  const int32_t first_wanted = first_block_seen(end, window(group));
  drop_pages(holding, group, std::min(until, first_wanted), SideCache::Way::kLeft);
  drop_pages(holding, group, std::min(until, end / kPageTokens), SideCache::Way::kEnded);
  drop_pages(holding, group, until, SideCache::Way::kLeft);
}

// The holding has the first block's hot page, or the entry that its table begins with does.
bool SequenceMemory::first_is_there(const Holding& holding) const {
  return hot_ == 0 || holding.hot_end_ > 0 || cache_->side(hot_).page_of(holding.table(0)[0]) >= 0;
}

void SequenceMemory::lend_first(Holding& holding) {
  holding.table(hot_)[0] = cache_->side(hot_).lend(holding.table(0)[0]);
  holding.first_[static_cast<size_t>(hot_)] = holding.hot_end_ = 1;
}

// Of hot pages there are none before this block, but the first one.
void SequenceMemory::leave_hot(Holding& holding, int32_t block) {
  if (holding.hot_end_ == 0) return;
  int32_t& first = holding.first_[static_cast<size_t>(hot_)];
  drop_pages(holding, hot_, std::min(block, holding.hot_end_), SideCache::Way::kLeft);
  first = std::max(first, block);
  holding.hot_end_ = std::max(holding.hot_end_, first);
}

void SequenceMemory::grow_hot(Holding& holding, int32_t blocks) {
  const int32_t missing = blocks - holding.hot_end_;
  if (missing <= 0) return;
  CHECK(blocks <= holding.blocks_max_);
  const std::span added(holding.table(hot_) + holding.hot_end_, static_cast<size_t>(missing));
  if (const int32_t lack = missing - pool(hot_).free_count(); lack > 0 && cache_)
    cache_->side(hot_).evict(lack);
  CHECK(pool(hot_).allocate(added));
  holding.hot_end_ = blocks;
  int32_t& first = holding.first_[static_cast<size_t>(hot_)];
  first = std::max(first, 1);
}

void SequenceMemory::grow(Holding& holding, int32_t tokens) {
  if (hot_ > 0) grow_hot(holding, blocks_for(tokens));
  const int32_t missing = blocks_for(tokens) - holding.blocks_;
  if (missing <= 0) return;
  CHECK(missing <= holding.blocks_max_ - holding.blocks_);
  for (int32_t g = 0; g < shared_groups(); ++g)
    take_fresh(holding, g, holding.blocks_, holding.blocks_ + missing);
  held_ += missing;
  holding.blocks_ += missing;
}

void SequenceMemory::share(Holding& holding, const TokenKeys& keys, int32_t tokens) {
  BlockTokens block;
  const auto full = [&] { return (holding.shared_ + 1) * kPageTokens <= tokens; };
  const bool attaches = checkpoints_ && holding.sharing();
  while (holding.sharing() && full()) {
    keys.read(holding.shared_, block);
    const PageId page = holding.pages(0)[static_cast<size_t>(holding.shared_)];
    const PrefixCache::Entry entry = cache_->insert(holding.key_, block, page);
    if (entry.page != page) {
      holding.sharing_ = Holding::Sharing::kWindows;
      break;
    }
    share_windows(holding, holding.shared_, page, /*wanted=*/false);
    holding.key_ = entry.key;
    ++holding.shared_;
  }
  if (attaches) checkpoints_->attach(holding.checkpoints_, holding.shared_pages());
  while (holding.sharing_ == Holding::Sharing::kWindows && full()) {
    keys.read(holding.shared_, block);
    share_lacking(holding, block);
  }
}

// The pages that the holding has of this block, unless the entry has its own.
void SequenceMemory::share_windows(const Holding& holding, int32_t block, PageId entry,
                                   bool wanted) {
  for (int32_t g = 1; g < shared_groups(); ++g) {
    if (block < holding.first_block(g)) continue;
    put_aside(g, entry, holding.table(g)[block], wanted);
  }
  if (hot_ > 0 && block == 0) put_aside(hot_, entry, holding.table(hot_)[0], wanted);
}

void SequenceMemory::put_aside(int32_t group, PageId entry, PageId page, bool wanted) {
  if (!cache_->side(group).contains(page)) cache_->side(group).put(entry, page, wanted);
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

bool SequenceMemory::begin_fill(Holding& holding, const PrefixKey& salt, const TokenKeys& keys,
                                int32_t known, std::span<const uint8_t> wanted, int32_t spare) {
  CHECK(cache_ && holding.empty() && holding.shared_ == 0 && !wanted.empty());
  const auto end = static_cast<int32_t>(wanted.size());
  const auto is_wanted = [&](int32_t block, int32_t pool) {
    return (wanted[static_cast<size_t>(block)] >> pool & 1) != 0;
  };
  holding.filled_ = true;
  holding.key_ = salt;
  holding.lacking_from_ = holding.lacking_until_ = 0;
  holding.sharing_ = Holding::Sharing::kAll;
  // The checkpoint is left as if a prompt ended there, and all of it were computed already.
  Checkpoints::begin(holding.checkpoints_, end * kPageTokens + 1);
  hold_known(holding, keys, std::min(known, end));
  const bool needs_state = has_states() && is_wanted(end - 1, group_count());
  bool room = end - holding.blocks_ + spare <= available();
  if (room && needs_state) {
    checkpoints_->plan(holding.checkpoints_, end * kPageTokens - 1, end * kPageTokens, {});
    room = holding.checkpoints_.count > 0;
  }
  if (!room) {
    release(holding);
    return false;
  }
  // What is there is held before anything is evicted.
  for (int32_t g = 1; g < shared_groups(); ++g) {
    int32_t& first = holding.first_[static_cast<size_t>(g)];
    first = std::min(first_block_seen(end * kPageTokens, window(g)), end);
    for (int32_t block = first; block < end; ++block)
      if (!is_wanted(block, g))
        holding.table(g)[block] = cache_->side(g).lend(holding.table(0)[block]);
  }
  if (hot_ > 0 && !is_wanted(0, hot_)) lend_first(holding);
  held_ += end - holding.blocks_;
  take_fresh(holding, 0, holding.blocks_, end);
  holding.blocks_ = end;
  for (int32_t g = 1; g < shared_groups(); ++g) {
    for (int32_t block = holding.first_block(g), first = block; block < end; first = block) {
      while (block < end && is_wanted(block, g)) ++block;
      take_fresh(holding, g, first, block);
      while (block < end && !is_wanted(block, g)) ++block;
    }
  }
  if (hot_ > 0 && is_wanted(0, hot_)) {
    take_fresh(holding, hot_, 0, 1);
    holding.first_[static_cast<size_t>(hot_)] = holding.hot_end_ = 1;
  }
  return true;
}

// REQUIRES: the cache has these blocks.
void SequenceMemory::hold_known(Holding& holding, const TokenKeys& keys, int32_t blocks) {
  PageId parent = -1;
  for (int32_t block = 0; block < blocks; ++block) {
    BlockTokens tokens;
    keys.read(block, tokens);
    const PrefixCache::Entry entry = cache_->next(holding.key_, parent, tokens);
    CHECK(entry.page >= 0);
    holding.key_ = entry.key;
    holding.table(0)[block] = parent = entry.page;
    hold(entry.page);
  }
  holding.blocks_ = holding.shared_ = blocks;
  for (int32_t g = 1; g < shared_groups(); ++g) holding.first_[static_cast<size_t>(g)] = blocks;
}

// Pages for blocks [first, end). REQUIRES: so many of the group are free, or can be evicted.
void SequenceMemory::take_fresh(Holding& holding, int32_t group, int32_t first, int32_t end) {
  if (first == end) return;
  const int32_t count = end - first;
  if (const int32_t lack = count - pool(group).free_count(); lack > 0 && cache_)
    group == 0 ? cache_->evict(lack) : cache_->side(group).evict(lack);
  PageId* const table = holding.table(group);
  const PageId after = first > holding.first_block(group) ? table[first - 1] : -1;
  CHECK(pool(group).allocate({table + first, static_cast<size_t>(count)}, after));
}

// Blocks that the cache knows already get what they lacked. Those that the holding has go only when
// all are forgotten.
int32_t SequenceMemory::end_fill(Holding& holding, const TokenKeys& keys, int32_t end) {
  CHECK(holding.filled_ && end <= holding.blocks_ && end >= holding.shared_);
  if (const int32_t known = holding.shared_; known > 0) {
    if (cache_->find(holding.key_) != holding.table(0)[known - 1]) return 0;
    for (int32_t block = 0; block < known; ++block)
      share_windows(holding, block, holding.table(0)[block], /*wanted=*/true);
  }
  share(holding, keys, end * kPageTokens);
  return holding.shared_;
}

void SequenceMemory::release(Holding& holding) {
  if (holding.shared_ > 0) cache_->touch(holding.key_);
  if (holding.hot_end_ > 0) {
    leave_hot(holding, holding.hot_end_);
    release_page(hot_, holding.table(hot_)[0], SideCache::Way::kEnded);
    holding.first_[static_cast<size_t>(hot_)] = 0;
  }
  for (int32_t g = 0; g < shared_groups(); ++g) {
    drop_pages(holding, g, holding.blocks_, SideCache::Way::kEnded);
    holding.first_[static_cast<size_t>(g)] = 0;
  }
  holding.hot_end_ = 0;
  holding.blocks_ = holding.shared_ = holding.kept_ = 0;
  holding.filled_ = false;
  if (checkpoints_) checkpoints_->release(holding.checkpoints_);
  if (holding.state_ >= 0) states_.give_back(std::exchange(holding.state_, -1));
  if (holding.cross_ >= 0) cross_.give_back(std::exchange(holding.cross_, -1));
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
                                SideCache::Way way) {
  int32_t& first = holding.first_[static_cast<size_t>(group)];
  for (; first < until; ++first) release_page(group, holding.table(group)[first], way);
}

void SequenceMemory::release_page(int32_t group, PageId page, SideCache::Way way) {
  if (group == 0) {
    drop(page);
  } else if (cache_) {
    cache_->side(group).release(page, way);
  } else {
    pool(group).release(page);
  }
}

void SequenceMemory::check(std::span<const Holding* const> holdings, int32_t filling) const {
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
  for (int32_t g = 1; g < shared_groups(); ++g) check_window(g, holdings);
  if (hot_ > 0) check_hot(holdings);
  check_states(holdings);
  check_cross(holdings, filling);
}

void SequenceMemory::check_cross(std::span<const Holding* const> holdings, int32_t filling) const {
  std::vector<int32_t> holders(static_cast<size_t>(cross_.count()), 0);
  if (filling >= 0) ++holders[static_cast<size_t>(filling)];
  for (const Holding* holding : holdings)
    if (holding->cross_ >= 0) ++holders[static_cast<size_t>(holding->cross_)];
  cross_.check(holders);
}

void SequenceMemory::check_hot(std::span<const Holding* const> holdings) const {
  const PagePool& pages = pool(hot_);
  std::vector<int32_t> firsts(static_cast<size_t>(pages.page_count()), 0), others = firsts;
  for (const Holding* holding : holdings) {
    if (holding->hot_end_ == 0) continue;
    CHECK(holding->first_block(hot_) >= 1 && holding->first_block(hot_) <= holding->hot_end_);
    ++firsts[static_cast<size_t>(holding->table(hot_)[0])];
    for (const PageId page : holding->hot_pages(hot_)) ++others[static_cast<size_t>(page)];
  }
  for (PageId page = 0; page < pages.page_count(); ++page) {
    const bool cached = cache_ && cache_->side(hot_).contains(page);
    const int32_t first = firsts[static_cast<size_t>(page)] + (cached ? 1 : 0);
    const int32_t other = others[static_cast<size_t>(page)];
    CHECK(pages.refs(page) == first + other && (other == 0 || (other == 1 && first == 0)));
  }
}

void SequenceMemory::check_states(std::span<const Holding* const> holdings) const {
  std::vector<int32_t> slots(static_cast<size_t>(states_.count()), 0);
  std::vector<const Checkpoints::Use*> uses;
  for (const Holding* holding : holdings) {
    CHECK((holding->state_ >= 0) == (has_states() && !holding->filled_));
    CHECK(holding->kept_ <= holding->shared_);
    if (holding->state_ >= 0) CHECK(++slots[static_cast<size_t>(holding->state_)] == 1);
    uses.push_back(&holding->checkpoints_);
  }
  CHECK(std::ranges::count(slots, 1) == states_.count() - states_.free_count());
  if (checkpoints_) checkpoints_->check(uses);
}

void SequenceMemory::check_window(int32_t group, std::span<const Holding* const> holdings) const {
  const PagePool& pages = pool(group);
  std::vector<int32_t> holders(static_cast<size_t>(pages.page_count()), 0);
  std::vector<PageId> with_block(static_cast<size_t>(blocks()), -1);
  int32_t filled = 0;
  for (const Holding* holding : holdings) {
    CHECK(holding->first_block(group) <= holding->blocks_);
    for (int32_t i = holding->first_block(group); i < holding->blocks_; ++i) {
      const PageId page = holding->table(group)[i];
      ++holders[static_cast<size_t>(page)];
      if (holding->filled_) {
        ++filled;
        continue;
      }
      PageId& other = with_block[static_cast<size_t>(holding->table(0)[i])];
      CHECK(other < 0 || other == page);
      other = page;
    }
  }
  for (PageId page = 0; page < pages.page_count(); ++page) {
    const bool cached = cache_ && cache_->side(group).contains(page);
    CHECK(pages.refs(page) == holders[static_cast<size_t>(page)] + (cached ? 1 : 0));
  }
  CHECK(held_pages(group) == std::ranges::count_if(holders, [](int32_t n) { return n > 0; }));
  CHECK(held_pages(group) <= held_ + filled);
}

}  // namespace weir::kv
