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
  // Prefers ascending runs: sequential pages are worth 20-30 % to attention.
  [[nodiscard]] bool allocate(std::span<PageId> pages);

  // REQUIRES: `page` is held.
  void retain(PageId page);
  void release(PageId page);
  int32_t refs(PageId page) const;

  int32_t free_count() const;
  int32_t page_count() const;

  // Walks everything and checks the invariants. Called when the engine is idle, and by tests.
  void check() const;

 private:
  std::vector<int32_t> refs_;
  std::vector<PageId> free_;
};

}  // namespace weir::kv
