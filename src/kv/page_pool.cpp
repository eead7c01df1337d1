// PagePool: the free list is a bitmap, a byte for each extent of 8 pages, so that runs are found by
// looking at whole bytes and no order has to be kept when pages come back.
#include "kv/page_pool.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace weir::kv {

namespace {
constexpr int32_t kExtentPages = 8;
constexpr uint8_t kFreeExtent = 0xff;  // Or a warm one.
}  // namespace

PagePool::PagePool(int32_t page_count)
    : refs_(static_cast<size_t>(page_count), 0),
      free_((static_cast<size_t>(page_count) + kExtentPages - 1) / kExtentPages, kFreeExtent),
      warm_(free_.size(), 0),
      free_since_(static_cast<size_t>(page_count)),
      free_count_(page_count) {
  if (const int32_t tail = page_count % kExtentPages; tail > 0)
    free_.back() = static_cast<uint8_t>((1u << tail) - 1);
}

bool PagePool::allocate(std::span<PageId> pages, PageId after) {
  CHECK(after >= -1 && after < page_count());
  if (std::ssize(pages) > free_count_) return false;
  size_t filled = 0;
  const auto take_run = [&](PageId page) {
    while (filled < pages.size() && is_free(page)) {
      take(page);
      pages[filled++] = page++;
    }
  };
  if (after >= 0) take_run(after + 1);
  while (filled < pages.size()) {
    const PageId begin = run_of_extents(static_cast<int32_t>(pages.size() - filled));
    if (begin < 0) break;
    take_run(begin);
  }
  // No free extent is left: single pages, lowest first.
  for (size_t extent = 0; filled < pages.size(); ++extent) {
    CHECK(extent < free_.size());
    while (filled < pages.size() && free_[extent] != 0)
      take_run(static_cast<PageId>(extent) * kExtentPages + std::countr_zero(free_[extent]));
  }
  return true;
}

// The first run of free extents that holds `pages` pages, else the longest; -1 if no extent is
// free. A last extent of fewer than 8 pages is never wholly free: it serves as single pages.
PageId PagePool::run_of_extents(int32_t pages) const {
  const size_t wanted = (static_cast<size_t>(pages) + kExtentPages - 1) / kExtentPages;
  size_t best = 0, best_length = 0, length = 0;
  for (size_t i = 0; i < free_.size() && best_length < wanted; ++i) {
    length = free_[i] == kFreeExtent ? length + 1 : 0;
    if (length > best_length) {
      best_length = length;
      best = i + 1 - length;
    }
  }
  return best_length == 0 ? -1 : static_cast<PageId>(best) * kExtentPages;
}

void PagePool::take(PageId page) {
  CHECK(refs_[static_cast<size_t>(page)] == 0);
  refs_[static_cast<size_t>(page)] = 1;
  free_[static_cast<size_t>(page) / kExtentPages] &=
      static_cast<uint8_t>(~(1u << (page % kExtentPages)));
  --free_count_;
  set_warm(page);
}

void PagePool::set_warm(PageId page) {
  if (is_warm(page)) return;
  warm_[static_cast<size_t>(page) / kExtentPages] |=
      static_cast<uint8_t>(1u << (page % kExtentPages));
  ++warm_count_;
}

void PagePool::retain(PageId page) {
  CHECK(refs(page) > 0);
  ++refs_[static_cast<size_t>(page)];
}

void PagePool::release(PageId page, Clock::time_point unused_since) {
  CHECK(refs(page) > 0);
  if (--refs_[static_cast<size_t>(page)] > 0) return;
  free_[static_cast<size_t>(page) / kExtentPages] |=
      static_cast<uint8_t>(1u << (page % kExtentPages));
  ++free_count_;
  free_since_[static_cast<size_t>(page)] = unused_since;
}

int32_t PagePool::refs(PageId page) const {
  CHECK(page >= 0 && page < page_count());
  return refs_[static_cast<size_t>(page)];
}

// Looks at extents first: most hold no page that is both free and warm.
PagePool::Run PagePool::idle_run(Clock::time_point before, int32_t warm_max, int32_t reach) const {
  Run run;
  for (PageId page = 0; page < page_count() && run.count == 0; ++page) {
    const auto extent = static_cast<size_t>(page) / kExtentPages;
    if ((free_[extent] & warm_[extent]) == 0) {
      page |= kExtentPages - 1;  // On to the next one.
    } else if (is_warm(page) && may_chill(page, before)) {
      run.first = page;
      run.count = 1;
    }
  }
  if (run.count == 0) return run;
  run.warm = 1;
  for (int32_t i = 0; i < reach && run.first > 0 && may_chill(run.first - 1, before); ++i) {
    --run.first;  // Cold: the first warm page was the first that may go.
    ++run.count;
  }
  for (PageId page = run.first + run.count; may_chill(page, before); ++page) {
    if (is_warm(page) && run.warm == warm_max) break;
    run.warm += is_warm(page) ? 1 : 0;
    ++run.count;
  }
  return run;
}

void PagePool::chill(const Run& run) {
  for (PageId page = run.first; page < run.first + run.count; ++page) {
    CHECK(is_free(page));
    if (!is_warm(page)) continue;
    warm_[static_cast<size_t>(page) / kExtentPages] &=
        static_cast<uint8_t>(~(1u << (page % kExtentPages)));
    --warm_count_;
  }
}

PagePool::Run PagePool::cold_run(int32_t pages) const {
  Run run;
  if (warm_count_ == page_count()) return run;
  int32_t left = pages;  // To be handed out from this extent on.
  for (size_t i = 0; i < free_.size() && left > 0; ++i) {
    const bool goes = free_[i] == kFreeExtent;
    const bool cold = goes && warm_[i] != kFreeExtent;
    if (run.count > 0 && !cold) break;
    if (goes) left -= kExtentPages;
    if (!cold) continue;
    if (run.count == 0) run.first = static_cast<PageId>(i) * kExtentPages;
    run.count += kExtentPages;
  }
  return run;
}

void PagePool::warm(const Run& run) {
  for (PageId page = run.first; page < run.first + run.count; ++page) {
    CHECK(is_free(page));
    set_warm(page);
    free_since_[static_cast<size_t>(page)] = now_;
  }
}

void PagePool::check() const {
  int32_t free = 0, warm = 0;
  for (PageId page = 0; page < page_count(); ++page) {
    CHECK(refs_[static_cast<size_t>(page)] >= 0);
    CHECK(is_free(page) == (refs_[static_cast<size_t>(page)] == 0));
    CHECK(is_free(page) || is_warm(page));
    free += is_free(page) ? 1 : 0;
    warm += is_warm(page) ? 1 : 0;
  }
  CHECK(free == free_count_);
  CHECK(warm == warm_count_);
  int32_t bits = 0;  // None beyond the last page.
  for (const uint8_t extent : free_) bits += std::popcount(extent);
  CHECK(bits == free_count_);
}

}  // namespace weir::kv
