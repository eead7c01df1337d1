// PrefixCache: entries in an array indexed by page, a table of page numbers by hash, and a list
// threaded through the entries in the order of use.
#include "kv/prefix_cache.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "kv/hash128.h"

namespace weir::kv {

// Half of the slots stay empty, so that probes are short.
PrefixCache::PrefixCache(std::span<PagePool> pools)
    : pool_(pools.front()),
      nodes_(static_cast<size_t>(pool_.page_count())),
      slots_(std::bit_ceil(static_cast<size_t>(pool_.page_count()) * 2 + 1), -1) {
  sides_.reserve(pools.size() - 1);
  for (PagePool& pool : pools.subspan(1)) sides_.emplace_back(pool, pool_.page_count());
}

PrefixKey PrefixCache::salt(const PrefixIdentity& identity) {
  const auto [low, high] = hash128({reinterpret_cast<const char*>(&identity), sizeof identity});
  return {.low = low, .high = high, .pages = 0};
}

PrefixKey PrefixCache::child(const PrefixKey& parent, const BlockTokens& tokens) {
  struct {
    uint64_t low, high;
    BlockTokens tokens;
  } block{parent.low, parent.high, tokens};
  static_assert(sizeof(block) == 16 + sizeof(BlockTokens));  // No padding is hashed.
  const XXH128_hash_t hash = XXH3_128bits(&block, sizeof(block));
  return {.low = hash.low64, .high = hash.high64, .pages = parent.pages + 1};
}

PrefixCache::Entry PrefixCache::insert(const PrefixKey& parent, const BlockTokens& tokens,
                                       PageId page) {
  CHECK(pool_.refs(page) > 0);
  Entry result{.key = child(parent, tokens), .page = -1};
  const PageId parent_page = find(parent);
  if (parent.pages > 0 && parent_page < 0) return result;
  if (const PageId known = find(result.key); known >= 0) {
    if (holds(known, parent, parent_page, tokens)) result.page = known;
    return result;
  }
  Node& added = node(page);
  CHECK(!added.cached);
  added.key = result.key;
  added.parent_key = parent;
  added.parent = parent_page;
  added.cached = true;
  added.worth = false;
  added.stored = 0;
  added.step = planned_;
  added.tokens = tokens;
  pool_.retain(page);
  add_slot(page);
  // It follows its parent, so that a growing sequence need not touch its whole chain at each page.
  if (parent_page < 0) {
    link_newest(page);
  } else {
    link_behind(page, parent_page);
  }
  ++count_;
  if (added.key.pages >= kWorthPages) mark_worth(page);
  result.page = page;
  return result;
}

PrefixCache::Entry PrefixCache::next(const PrefixKey& parent, PageId parent_page,
                                     const BlockTokens& tokens) const {
  CHECK(parent_page < 0 || node(parent_page).key == parent);
  Entry result{.key = child(parent, tokens), .page = -1};
  const PageId page = find(result.key);
  if (page >= 0 && holds(page, parent, parent_page, tokens)) result.page = page;
  return result;
}

void PrefixCache::touch(const PrefixKey& key) { touch_chain(find(key)); }

void PrefixCache::take(const PrefixKey& key) {
  const PageId last = find(key);
  mark_worth(last);
  touch_chain(last);
}

// With all before it: an entry is worth keeping whenever one after it is.
void PrefixCache::mark_worth(PageId last) {
  for (PageId page = last; page >= 0 && !node(page).worth; page = node(page).parent)
    node(page).worth = true;
}

// The least recently used entry has no children (invariant 2). One that a sequence holds is in use
// now: its chain moves to the front, so that the next call does not meet it again.
int32_t PrefixCache::evict(int32_t pages) {
  ++marks_;
  int32_t freed = 0;
  while (freed < pages && oldest_ >= 0 && node(oldest_).mark != marks_) {
    if (pool_.refs(oldest_) == 1) {
      leave(oldest_);
      ++freed;
    } else {
      for (PageId page = oldest_; page >= 0; page = node(page).parent) node(page).mark = marks_;
      touch_chain(oldest_);
    }
  }
  return freed;
}

// One that a sequence holds is in use now, and its chain with it.
int32_t PrefixCache::evict_unused(Clock::time_point since, int32_t pages) {
  CHECK(since < now_);
  int32_t freed = 0;
  while (freed < pages && oldest_ >= 0 && node(oldest_).used <= since) {
    if (pool_.refs(oldest_) != 1) {
      touch_chain(oldest_);
    } else if (watcher_waits(oldest_)) {
      break;
    } else {
      leave(oldest_);
      ++freed;
    }
  }
  return freed;
}

Clock::time_point PrefixCache::unused_due(Clock::duration kept) const {
  if (oldest_ < 0 || watcher_waits(oldest_)) return Clock::time_point::max();
  return node(oldest_).used + kept;
}

void PrefixCache::clear() {
  while (oldest_ >= 0) remove(oldest_);
}

// From the oldest on, children come before parents: what a held page needs is held back too. A
// parent may be referenced by no sequence while a child is: its sequence computed a copy of it.
int32_t PrefixCache::evictable_count() const {
  std::vector<bool> needed(nodes_.size(), false);
  int32_t evictable = 0;
  for (PageId page = oldest_; page >= 0; page = node(page).newer) {
    if (pool_.refs(page) == 1 && !needed[static_cast<size_t>(page)]) {
      ++evictable;
    } else if (const PageId parent = node(page).parent; parent >= 0) {
      needed[static_cast<size_t>(parent)] = true;
    }
  }
  return evictable;
}

PageId PrefixCache::find(const PrefixKey& key) const {
  for (size_t i = home(key); slots_[i] >= 0; i = (i + 1) & (slots_.size() - 1))
    if (node(slots_[i]).key == key) return slots_[i];
  return -1;
}

bool PrefixCache::holds(PageId page, const PrefixKey& parent_key, PageId parent,
                        const BlockTokens& tokens) const {
  const Node& found = node(page);
  return found.parent_key == parent_key && found.parent == parent &&
         found.tokens == tokens;
}

void PrefixCache::add_slot(PageId page) {
  size_t i = home(node(page).key);
  while (slots_[i] >= 0) i = (i + 1) & (slots_.size() - 1);
  slots_[i] = page;
}

// Closes the gap: entries after it that probed past it move up, so no tombstones are needed.
void PrefixCache::remove_slot(PageId page) {
  const size_t mask = slots_.size() - 1;
  size_t gap = home(node(page).key);
  while (slots_[gap] != page) gap = (gap + 1) & mask;
  for (size_t i = (gap + 1) & mask; slots_[i] >= 0; i = (i + 1) & mask) {
    const size_t distance = (i - home(node(slots_[i]).key)) & mask;
    if (distance < ((i - gap) & mask)) continue;  // Its home lies after the gap.
    slots_[gap] = slots_[i];
    gap = i;
  }
  slots_[gap] = -1;
}

void PrefixCache::unlink(PageId page) {
  const Node& gone = node(page);
  (gone.newer >= 0 ? node(gone.newer).older : newest_) = gone.older;
  (gone.older >= 0 ? node(gone.older).newer : oldest_) = gone.newer;
}

void PrefixCache::link_newest(PageId page) {
  Node& added = node(page);
  added.used = now_;
  added.newer = -1;
  added.older = newest_;
  (newest_ >= 0 ? node(newest_).newer : oldest_) = page;
  newest_ = page;
}

void PrefixCache::link_behind(PageId page, PageId newer) {
  Node& added = node(page);
  added.used = node(newer).used;
  added.newer = newer;
  added.older = node(newer).older;
  (added.older >= 0 ? node(added.older).newer : oldest_) = page;
  node(newer).older = page;
}

// From the last page up, so that each parent ends up before its child.
void PrefixCache::touch_chain(PageId last) {
  for (PageId page = last; page >= 0; page = node(page).parent) {
    unlink(page);
    link_newest(page);
  }
}

void PrefixCache::leave(PageId page) {
  if (is_watched(page)) watcher_->leaves(page);
  remove(page);
}

void PrefixCache::watch(Watcher* watcher) {
  watcher_ = watcher;
  for (SideCache& side : sides_)
    side.watch([this](PageId entry) {
      if (is_watched(entry)) watcher_->leaves(entry);
    });
}

void PrefixCache::set_steps(uint64_t planned, uint64_t done) {
  CHECK(done <= planned);
  planned_ = planned;
  done_ = done;
  for (SideCache& side : sides_) side.set_step(planned);
}

uint8_t PrefixCache::pages_worth_keeping(PageId page) const {
  if (node(page).step > done_) return 0;
  uint8_t pages = 1;
  for (size_t i = 0; i < sides_.size(); ++i)
    if (sides_[i].worth_keeping(page) >= 0 && sides_[i].step_of(page) <= done_)
      pages |= static_cast<uint8_t>(1 << (i + 1));
  return pages;
}

PrefixCache::Cached PrefixCache::cached(PageId page) const {
  const Node& entry = node(page);
  CHECK(entry.cached);
  return {.key = entry.key,
          .parent_key = entry.parent_key,
          .parent = entry.parent,
          .tokens = entry.tokens,
          .worth_keeping = entry.worth,
          .pages = pages_worth_keeping(page),
          .stored = entry.stored};
}

std::vector<PageId> PrefixCache::newest_first() const {
  std::vector<PageId> pages;
  pages.reserve(static_cast<size_t>(count_));
  for (PageId page = newest_; page >= 0; page = node(page).older) pages.push_back(page);
  return pages;
}

void PrefixCache::remove(PageId page) {
  unlink(page);
  remove_slot(page);
  node(page).cached = false;
  --count_;
  for (SideCache& side : sides_) side.forget(page, node(page).used);
  pool_.release(page, node(page).used);
}

void PrefixCache::check() const {
  for (const SideCache& side : sides_) {
    side.check();
    for (PageId page = 0; page < pool_.page_count(); ++page)
      CHECK(side.page_of(page) < 0 || contains(page));
  }
  int32_t listed = 0;
  std::vector<bool> seen(nodes_.size(), false);
  PageId newer = -1;
  for (PageId page = newest_; page >= 0; page = node(page).older) {
    const Node& e = node(page);
    CHECK(e.used <= (newer >= 0 ? node(newer).used : now_));
    CHECK(e.cached && e.newer == newer && !seen[static_cast<size_t>(page)]);
    CHECK(pool_.refs(page) >= 1);
    CHECK(find(e.key) == page);
    CHECK(e.key == child(e.parent_key, e.tokens));
    CHECK((e.parent < 0) == (e.parent_key.pages == 0));
    if (e.parent >= 0) {
      CHECK(seen[static_cast<size_t>(e.parent)]);
      CHECK(node(e.parent).key == e.parent_key);
      CHECK(node(e.parent).worth || !e.worth);
    }
    seen[static_cast<size_t>(page)] = true;
    newer = page;
    ++listed;
  }
  CHECK(newer == oldest_);
  CHECK(listed == count_);
  CHECK(std::ranges::count_if(nodes_, [](const Node& e) { return e.cached; }) == count_);
  CHECK(std::ranges::count_if(slots_, [](PageId page) { return page >= 0; }) == count_);
}

}  // namespace weir::kv
