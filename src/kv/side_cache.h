// SideCache: what the prefix cache keeps beside the pages of the spine, at most one piece for each
// of its entries: pages of one window's group, or slots of states (kv/checkpoints.h), which are
// called pages here as well. An entry without one stands all the same: only what lies before the
// place where a text goes on has to be there.
//
// Which page goes first, of those that no sequence holds: one that its own sequence left on its
// way, the longest ago; then one that a sequence may want again, the least recently held: it lies
// at the end of a text, or another text has begun alike and needed it. Of these it is said that they
// go, so that they may be kept elsewhere (kv/disk/spill.h).
//
// Threads: owned by the engine thread. Allocates at construction only.
//
// Invariants:
// (1) The cache holds one reference to each page that is in an entry; a page is in one at most.
// (2) A page is idle, and in one of the two lists, if it is in an entry and no sequence holds it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "kv/page_pool.h"

namespace weir::kv {

class SideCache {
 public:
  // `entries`: how many there may be. `pool` outlives the cache.
  SideCache(PagePool& pool, int32_t entries);

  // The page of an entry; -1: none.
  PageId page_of(PageId entry) const { return page_of_[static_cast<size_t>(entry)]; }

  // The entry gets a page that a sequence holds, if it has none. `wanted`: another text has needed
  // it. REQUIRES: the page is in no entry.
  void put(PageId entry, PageId page, bool wanted);
  // The entry's page, retained for a sequence. REQUIRES: there is one.
  PageId lend(PageId entry);

  // How a sequence comes to hold a page no more.
  enum class Way : uint8_t {
    kLeft,   // Its window has left it.
    kEnded,  // It ends, or gives way.
  };
  // A sequence's reference goes, whether the page is in an entry or not.
  void release(PageId page, Way way);

  // The entry's page goes back to the pool, unless a sequence holds it or another text has needed
  // it.
  void drop(PageId entry);
  // The entry is gone, unused since then.
  void forget(PageId entry, Clock::time_point unused_since);
  // Gives up to `pages` idle pages back to the pool. Returns how many.
  int32_t evict(int32_t pages);

  // Called with the entry whose page evict() is about to take, if it is one that is worth keeping.
  void watch(std::function<void(PageId entry)> call) { watch_ = std::move(call); }
  // Pages that are put from here on are of the step that is planned now (PrefixCache::set_steps).
  void set_step(uint64_t planned) { step_ = planned; }
  // The entry's page, if a sequence may want it again; -1: none. And its step.
  PageId worth_keeping(PageId entry) const;
  uint64_t step_of(PageId entry) const { return node(page_of(entry)).step; }

  // Pages that no sequence holds.
  int32_t idle_count() const { return idle_count_; }
  bool contains(PageId page) const { return node(page).entry >= 0; }

  // Walks everything and checks the invariants.
  void check() const;

 private:
  enum List : int8_t { kNone = -1, kLeftBehind, kWanted, kLists };
  struct Node {
    PageId entry = -1;
    PageId newer = -1;
    PageId older = -1;
    List list = kNone;
    bool wanted = false;
    uint64_t step = 0;
  };

  Node& node(PageId page) { return nodes_[static_cast<size_t>(page)]; }
  const Node& node(PageId page) const { return nodes_[static_cast<size_t>(page)]; }
  void link(PageId page, List list);
  void unlink(PageId page);
  void remove(PageId page, Clock::time_point unused_since);

  PagePool& pool_;
  std::vector<Node> nodes_;      // By page.
  std::vector<PageId> page_of_;  // By entry.
  std::array<PageId, kLists> newest_{-1, -1};
  std::array<PageId, kLists> oldest_{-1, -1};
  int32_t idle_count_ = 0;
  uint64_t step_ = 0;
  std::function<void(PageId entry)> watch_;
};

}  // namespace weir::kv
