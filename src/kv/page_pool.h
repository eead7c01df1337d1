// PagePool hands out fixed-size KV pages by number; it never touches their bytes.
//
// Threads: owned by the engine thread; nothing here is atomic.
//
// Invariants:
// (1) A page is free (refs == 0, on the free list) or held (refs > 0, not on it).
// (2) free + held == count, always: pages are created once, in the constructor.
// (3) A page with refs > 1 is shared by a prefix and must not be written.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weir::kv {

using PageId = int32_t;

class PagePool {
 public:
  explicit PagePool(int32_t page_count);

  // Fills `pages` with free pages, each with one reference, or changes nothing and returns false.
  // Prefers ascending runs: sequential pages are worth 20-30 % to attention. `after` is the last
  // page that the sequence holds (-1: none); the run goes on behind it where it can. A new run
  // begins in an extent of 8 free pages, so that neighbours leave each other room to grow.
  [[nodiscard]] bool allocate(std::span<PageId> pages, PageId after = -1);

  // REQUIRES: `page` is held.
  void retain(PageId page);
  void release(PageId page);
  int32_t refs(PageId page) const;

  int32_t free_count() const { return free_count_; }
  int32_t page_count() const { return static_cast<int32_t>(refs_.size()); }

  // Walks everything and checks the invariants. Called when the engine is idle, and by tests.
  void check() const;

 private:
  bool is_free(PageId page) const {
    return page < page_count() && (free_[static_cast<size_t>(page) / 8] >> (page % 8) & 1) != 0;
  }
  void take(PageId page);
  PageId run_of_extents(int32_t pages) const;

  std::vector<int32_t> refs_;
  std::vector<uint8_t> free_;  // The free list: a byte is an extent of 8 pages, a bit is a page.
  int32_t free_count_ = 0;
};

}  // namespace weir::kv
