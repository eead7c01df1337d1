#include "kv/side_cache.h"

#include <algorithm>

#include "base/check.h"

namespace weir::kv {

SideCache::SideCache(PagePool& pool, int32_t entries)
    : pool_(pool),
      nodes_(static_cast<size_t>(pool.page_count())),
      page_of_(static_cast<size_t>(entries), -1) {}

void SideCache::put(PageId entry, PageId page, bool wanted) {
  CHECK(pool_.refs(page) > 0 && !contains(page));
  if (page_of(entry) >= 0) return;
  pool_.retain(page);
  page_of_[static_cast<size_t>(entry)] = page;
  node(page).entry = entry;
  node(page).wanted = wanted;
  node(page).step = step_;
}

PageId SideCache::lend(PageId entry) {
  const PageId page = page_of(entry);
  CHECK(page >= 0);
  if (node(page).list != kNone) unlink(page);
  pool_.retain(page);
  node(page).wanted = true;
  return page;
}

void SideCache::release(PageId page, Way way) {
  pool_.release(page);
  if (!contains(page) || pool_.refs(page) > 1) return;
  link(page, way == Way::kLeft && !node(page).wanted ? kLeftBehind : kWanted);
}

void SideCache::drop(PageId entry) {
  const PageId page = page_of(entry);
  if (page >= 0 && pool_.refs(page) == 1 && !node(page).wanted) remove(page, pool_.now());
}

void SideCache::forget(PageId entry, Clock::time_point unused_since) {
  if (const PageId page = page_of(entry); page >= 0) remove(page, unused_since);
}

int32_t SideCache::evict(int32_t pages) {
  int32_t freed = 0;
  for (const List list : {kLeftBehind, kWanted})
    for (; freed < pages && oldest_[list] >= 0; ++freed) {
      const PageId page = oldest_[list];
      if (list == kWanted && watch_) watch_(node(page).entry);
      remove(page, Clock::time_point::min());
    }
  return freed;
}

PageId SideCache::worth_keeping(PageId entry) const {
  const PageId page = page_of(entry);
  return page >= 0 && (node(page).wanted || node(page).list == kWanted) ? page : -1;
}

void SideCache::link(PageId page, List list) {
  Node& added = node(page);
  added.list = list;
  added.newer = -1;
  added.older = newest_[list];
  (newest_[list] >= 0 ? node(newest_[list]).newer : oldest_[list]) = page;
  newest_[list] = page;
  ++idle_count_;
}

void SideCache::unlink(PageId page) {
  Node& gone = node(page);
  (gone.newer >= 0 ? node(gone.newer).older : newest_[gone.list]) = gone.older;
  (gone.older >= 0 ? node(gone.older).newer : oldest_[gone.list]) = gone.newer;
  gone.list = kNone;
  --idle_count_;
}

// Out of its entry. A sequence may hold it still.
void SideCache::remove(PageId page, Clock::time_point unused_since) {
  if (node(page).list != kNone) unlink(page);
  page_of_[static_cast<size_t>(node(page).entry)] = -1;
  node(page).entry = -1;
  pool_.release(page, unused_since);
}

void SideCache::check() const {
  int32_t listed = 0;
  for (const List list : {kLeftBehind, kWanted}) {
    PageId newer = -1;
    for (PageId page = newest_[list]; page >= 0; page = node(page).older) {
      CHECK(node(page).list == list && node(page).newer == newer && contains(page));
      CHECK(list == kWanted || !node(page).wanted);
      newer = page;
      ++listed;
    }
    CHECK(newer == oldest_[list]);
  }
  CHECK(listed == idle_count_);
  int32_t kept = 0, idle = 0;
  for (PageId page = 0; page < pool_.page_count(); ++page) {
    if (!contains(page)) continue;
    CHECK(page_of(node(page).entry) == page && pool_.refs(page) > 0);
    CHECK((pool_.refs(page) == 1) == (node(page).list != kNone));
    idle += pool_.refs(page) == 1 ? 1 : 0;
    ++kept;
  }
  CHECK(idle == idle_count_);
  CHECK(kept == std::ranges::count_if(page_of_, [](PageId page) { return page >= 0; }));
}

}  // namespace weir::kv
