// PageKeeper gives the memory of pages that no sequence needs back to the system, a piece at a
// time: of free ones after a while, of those that only the prefix cache holds after a longer one,
// and of both at once when memory is short; always the longest unused first.
//
// Threads: owned by the engine thread.
//
// Invariants:
// (1) Only memory of free pages goes back.
// (2) A call takes time for one piece of each group at the most, and next to none where nothing is
//     due.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/page_memory.h"
#include "kv/page_pool.h"
#include "kv/prefix_cache.h"

namespace weir::kv {

class PageKeeper {
 public:
  struct Times {
    Clock::duration free = std::chrono::minutes(1);  // A free page keeps its memory so long.
    Clock::duration cached =
        std::chrono::minutes(30);  // A cached one that no sequence uses; 0: for ever.
  };
  // A pool for each group of `memory`, and where there are checkpoints one for them; `cache` may be
  // null. All outlive the keeper.
  PageKeeper(const Times& times, std::span<PagePool> pools, PrefixCache* cache, PageMemory& memory);

  // What is now, also for the pools and the cache. Never goes back.
  void set_time(Clock::time_point now);

  // A piece of what is due. REQUIRES: no pass is running.
  void give_back();
  // When there is something to give back, as far as is known; max(): nothing is kept in vain.
  Clock::time_point due() const;

  // Memory is short: all free pages are due now, and the least recently used quarter of the cache,
  // of its entries and of the pages of windows and checkpoints that it keeps.
  void shed();

  // Memory of pages that have any.
  int64_t taken_bytes() const;

 private:
  struct Group {
    PagePool& pool;
    const int32_t piece_pages;
    const int32_t reach;
    Clock::time_point next_look{};  // At free pages.
  };

  void evict();
  void give_back(int32_t index);

  const Times times_;
  std::vector<Group> groups_;
  PrefixCache* const cache_;
  PageMemory& memory_;
  Clock::time_point now_{};
  Clock::time_point shed_{};  // Pages that were free then are due.
  int32_t shed_pages_ = 0;    // Entries of the cache that are still to go.
};

}  // namespace weir::kv
