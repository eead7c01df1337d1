// PagePool hands out fixed-size KV pages by number; it never touches their bytes. It knows which
// pages may have memory: those handed out, or said to be warm, since their memory last went back to
// the system are warm, the others cold.
//
// Threads: owned by the engine thread; nothing here is atomic.
//
// Invariants:
// (1) A page is free (refs == 0, on the free list) or held (refs > 0, not on it).
// (2) free + held == count, always: pages are created once, in the constructor.
// (3) A page with refs > 1 is shared by a prefix and must not be written.
// (4) A held page is warm.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

namespace weir::kv {

using PageId = int32_t;
using Clock = std::chrono::steady_clock;

class PagePool {
 public:
  explicit PagePool(int32_t page_count);

  // Fills `pages` with free pages, each with one reference, or changes nothing and returns false.
  // Prefers ascending runs: sequential pages are worth 20-30 % to attention. `after` is the last
  // page that the sequence holds (-1: none); the run goes on after it where it can. A new run
  // begins in an extent of 8 free pages, so that neighbours leave each other room to grow.
  [[nodiscard]] bool allocate(std::span<PageId> pages, PageId after = -1);

  // REQUIRES: `page` is held.
  void retain(PageId page);
  void release(PageId page) { release(page, now_); }
  // Releases a page that no sequence has used after `unused_since`.
  void release(PageId page, Clock::time_point unused_since);
  int32_t refs(PageId page) const;

  int32_t free_count() const { return free_count_; }
  int32_t page_count() const { return static_cast<int32_t>(refs_.size()); }

  // What is now, for pages that become free from here on. Never goes back.
  void set_time(Clock::time_point now) { now_ = now; }
  Clock::time_point now() const { return now_; }

  // Free pages side by side whose memory may go back.
  struct Run {
    PageId first = 0;
    int32_t count = 0;  // 0: there are none.
    int32_t warm = 0;   // How many of them.
  };
  // The first run of pages that are cold, or have been free since `before`: at most `warm_max` warm
  // ones, at least one. It begins with up to `reach` cold ones, and takes all that follow: what has
  // never been handed out may have memory all the same, where that comes in larger pieces.
  Run idle_run(Clock::time_point before, int32_t warm_max, int32_t reach) const;
  // The run's memory has gone back.
  void chill(const Run& run);
  // Of the free pages that new runs of `pages` in all get next, the first cold ones side by side,
  // whole extents; none (count 0): they are warm.
  Run cold_run(int32_t pages) const;
  // The run's memory has been taken. REQUIRES: its pages are free.
  void warm(const Run& run);
  int32_t warm_count() const { return warm_count_; }
  int32_t warm_free_count() const { return warm_count_ - (page_count() - free_count_); }

  // Walks everything and checks the invariants. Called when the engine is idle, and by tests.
  void check() const;

 private:
  bool is_free(PageId page) const {
    return page < page_count() && (free_[static_cast<size_t>(page) / 8] >> (page % 8) & 1) != 0;
  }
  bool is_warm(PageId page) const {
    return (warm_[static_cast<size_t>(page) / 8] >> (page % 8) & 1) != 0;
  }
  bool may_chill(PageId page, Clock::time_point before) const {
    return is_free(page) && (!is_warm(page) || free_since_[static_cast<size_t>(page)] <= before);
  }
  void take(PageId page);
  void set_warm(PageId page);
  PageId run_of_extents(int32_t pages) const;

  std::vector<int32_t> refs_;
  std::vector<uint8_t> free_;  // The free list: a byte is an extent of 8 pages, a bit is a page.
  std::vector<uint8_t> warm_;  // A bit is a page, as above.
  std::vector<Clock::time_point> free_since_;
  Clock::time_point now_{};
  int32_t free_count_ = 0;
  int32_t warm_count_ = 0;
};

}  // namespace weir::kv
