#include "kv/sequence_memory.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace weir::kv {

SequenceMemory::SequenceMemory(int32_t blocks, bool prefix_cache) : pool_(blocks) {
  if (prefix_cache) cache_.emplace(pool_);
}

int32_t SequenceMemory::own_blocks(const Holding& holding) const {
  return static_cast<int32_t>(
      std::ranges::count_if(holding.pages(), [this](PageId page) { return holders(page) == 1; }));
}

void SequenceMemory::begin(Holding& holding, const PrefixKey& salt) const {
  CHECK(holding.empty() && holding.shared_ == 0 && salt.pages == 0);
  holding.key_ = salt;
  holding.sharing_ = cache_.has_value();
}

int32_t SequenceMemory::match(Holding& holding, const TokenKeys& keys, int32_t tokens_max) {
  CHECK(holding.shared_ <= holding.blocks_ && tokens_max <= holding.blocks_max_ * kPageTokens);
  if (!holding.sharing_ || holding.shared_ < holding.blocks_) return 0;
  const int32_t before = holding.blocks_;
  BlockTokens tokens;
  while ((holding.blocks_ + 1) * kPageTokens <= tokens_max) {
    keys.read(holding.blocks_, tokens);
    const PageId parent = holding.blocks_ == 0 ? -1 : holding.pages().back();
    const PrefixCache::Entry next = cache_->next(holding.key_, parent, tokens);
    if (next.page < 0) break;
    pool_.retain(next.page);
    hold(next.page);
    holding.table_[static_cast<size_t>(holding.blocks_++)] = next.page;
    holding.key_ = next.key;
  }
  holding.shared_ = holding.blocks_;
  if (holding.blocks_ > before) cache_->touch(holding.key_);
  return (holding.blocks_ - before) * kPageTokens;
}

void SequenceMemory::grow(Holding& holding, int32_t tokens) {
  const int32_t missing = blocks_for(tokens) - holding.blocks_;
  if (missing <= 0) return;
  CHECK(missing <= holding.blocks_max_ - holding.blocks_);
  if (missing > pool_.free_count() && cache_) cache_->evict(missing - pool_.free_count());
  const PageId last = holding.empty() ? -1 : holding.pages().back();
  const std::span added(holding.table_.get() + holding.blocks_, static_cast<size_t>(missing));
  CHECK(pool_.allocate(added, last));
  for (const PageId page : added) hold(page);
  holding.blocks_ += missing;
}

void SequenceMemory::share(Holding& holding, const TokenKeys& keys, int32_t tokens) {
  BlockTokens block;
  while (holding.sharing_ && (holding.shared_ + 1) * kPageTokens <= tokens) {
    keys.read(holding.shared_, block);
    const PageId page = holding.pages()[static_cast<size_t>(holding.shared_)];
    const PrefixCache::Entry entry = cache_->insert(holding.key_, block, page);
    holding.sharing_ = entry.page == page;
    if (!holding.sharing_) break;
    holding.key_ = entry.key;
    ++holding.shared_;
  }
}

void SequenceMemory::rollback(Holding& holding, int32_t tokens) {
  CHECK(tokens >= holding.shared_ * kPageTokens && blocks_for(tokens) <= holding.blocks_);
  for (; holding.blocks_ > blocks_for(tokens); --holding.blocks_) drop(holding.pages().back());
}

void SequenceMemory::release(Holding& holding) {
  if (holding.shared_ > 0) cache_->touch(holding.key_);
  for (const PageId page : holding.pages()) drop(page);
  holding.blocks_ = holding.shared_ = 0;
}

void SequenceMemory::forget_shared() {
  if (cache_) cache_->clear();
}

// The cache has one reference to a page that it has; all others are sequences'.
int32_t SequenceMemory::holders(PageId page) const {
  return pool_.refs(page) - (cache_ && cache_->contains(page) ? 1 : 0);
}

// The reference is there already.
void SequenceMemory::hold(PageId page) {
  if (holders(page) == 1) ++held_;
}

void SequenceMemory::drop(PageId page) {
  const int32_t others = holders(page) - 1;
  CHECK(others >= 0);
  if (others == 0) --held_;
  pool_.release(page);
}

void SequenceMemory::check(std::span<const Holding* const> holdings) const {
  pool_.check();
  if (cache_) cache_->check();
  std::vector<int32_t> holders(static_cast<size_t>(blocks()), 0);
  for (const Holding* holding : holdings) {
    CHECK(holding->shared_ <= holding->blocks_ && holding->blocks_ <= holding->blocks_max_);
    CHECK(holding->key_.pages == holding->shared_);
    for (const PageId page : holding->pages()) ++holders[static_cast<size_t>(page)];
  }
  CHECK(held_ == std::ranges::count_if(holders, [](int32_t n) { return n > 0; }));
  int32_t cached = 0;
  for (PageId page = 0; page < blocks(); ++page) {
    CHECK(holders[static_cast<size_t>(page)] == this->holders(page));
    cached += pool_.refs(page) - holders[static_cast<size_t>(page)];
  }
  CHECK(cached == (cache_ ? cache_->page_count() : 0));
  CHECK(available() == pool_.free_count() + (cache_ ? cache_->evictable_count() : 0));
}

}  // namespace weir::kv
