// PrefixCache finds the longest known prefix of a prompt, page by page along a chain of hashes, and
// lends its pages (decision 14). Only full pages are cached. No tree: an entry is found by the
// hash of its parent's key and its own 32 tokens, with what is seen beside them, and compared with
// both before it is believed, so that a collision of hashes cannot lend a wrong page.
//
// SequenceMemory asks for a sequence's pages one by one, next(), gives it those that have become
// full, insert(), and says when they were used, touch(). When PagePool::allocate() fails, evict()
// gives pages back to it.
//
// An entry is a page of the spine (kv/layout.h) and, of each window's group, a page or none, and
// where layers have states, a slot with those at its end or none; they go with it.
//
// What an entry's page holds is there once the step that fills it has run: an entry is added when
// that step is planned (set_steps()). A watcher is told of entries that leave, so that they may be
// kept elsewhere, and which of them are worth it (kv/disk/spill.h).
//
// Threads: owned by the engine thread. Allocates at construction only.
//
// Invariants:
// (1) The cache holds one reference to each cached page; a page is cached at most once.
// (2) The order of use lists each entry exactly once, a parent always more recently used than its
//     children. So the least recently used entry has no children, and children go before parents.
//     Times of use follow that order; a page that is added counts as used when its parent was,
//     until its sequence ends or gives its pages back.
// (3) Every entry but a first page has its parent in the cache.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "kv/block.h"
#include "kv/page_pool.h"
#include "kv/prefix_identity.h"
#include "kv/side_cache.h"

namespace weir::kv {

// What a page and everything before it hold: a 128-bit XXH3 hash, and how many pages that is (0:
// the salt alone).
struct PrefixKey {
  uint64_t low = 0;
  uint64_t high = 0;
  int32_t pages = 0;
  friend bool operator==(const PrefixKey&, const PrefixKey&) = default;
};

class PrefixCache {
 public:
  // One pool for each group of pages, the spine's first, and for slots; they outlive the cache.
  explicit PrefixCache(std::span<PagePool> pools);
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;
  ~PrefixCache() { clear(); }

  // The key before the first page.
  static PrefixKey salt(const PrefixIdentity& identity);
  // The key of the page that holds `tokens` after what `parent` stands for.
  static PrefixKey child(const PrefixKey& parent, const BlockTokens& tokens);

  struct Entry {
    PrefixKey key;     // The parent of what follows.
    PageId page = -1;  // The page cached under it; -1: none.
  };
  // The page that holds `tokens` after the cached page `parent_page` of key `parent` (-1 and a
  // salt: the first page). It does not count as use: touch() the last one.
  Entry next(const PrefixKey& parent, PageId parent_page, const BlockTokens& tokens) const;

  // Says that `page`, which the caller holds and which no sequence will write again, holds `tokens`
  // after `parent`. If another page is cached for the same, that one stays and is returned: its
  // bytes are the same. Page -1: its parent is not cached (any more).
  Entry insert(const PrefixKey& parent, const BlockTokens& tokens, PageId page);

  // The chain that ends with `key` counts as used now. Unknown keys are ignored.
  void touch(const PrefixKey& key);
  // The same, for another sequence: its entries are worth keeping from now on.
  void take(const PrefixKey& key);

  // Gives up to `pages` pages back to the pool, least recently used first, among those that no
  // sequence but the cache references. Returns how many.
  int32_t evict(int32_t pages);
  // Gives back pages that no sequence has used after `since`, while the watcher is ready for them:
  // there is no hurry. REQUIRES: `since` lies before now.
  int32_t evict_unused(Clock::time_point since, int32_t pages);
  // When that has something to do, if entries stay for `kept` after their last use; max(): nothing,
  // or the watcher is not ready, who says when it is.
  Clock::time_point unused_due(Clock::duration kept) const;
  // What is now, for all uses from here on. Never goes back.
  void set_time(Clock::time_point now) { now_ = now; }
  // All that can be evicted. Pages that sequences still hold are forgotten too.
  void clear();

  // What entries have of a pool beside the spine's. `pool`: from 1.
  SideCache& side(int32_t pool) { return sides_[static_cast<size_t>(pool) - 1]; }
  const SideCache& side(int32_t pool) const { return sides_[static_cast<size_t>(pool) - 1]; }

  // The page cached under a key; -1: none.
  PageId find(const PrefixKey& key) const;
  int32_t page_count() const { return count_; }
  bool contains(PageId page) const { return node(page).cached; }
  // How many pages evict() could free now. Walks all entries, and allocates: for tests.
  int32_t evictable_count() const;

  // Told of an entry just before evict() or evict_unused() takes it out, or its SideCache a page of
  // it, if it has anything that is to be stored: that is still there. Not of what clear() takes out.
  class Watcher {
   public:
    virtual void leaves(PageId page) = 0;
    // Whether a page that leaves now is kept, or lost for good: false where it soon could be kept.
    virtual bool ready() = 0;

   protected:
    ~Watcher() = default;
  };
  // Null: none. It outlives the cache, or is taken away before.
  void watch(Watcher* watcher);
  // Steps are numbered in the order in which they are planned and run. Entries that are added from
  // here on are of step `planned`; all up to `done` have run, and what they computed was right.
  void set_steps(uint64_t planned, uint64_t done);

  // An entry, as it is kept elsewhere.
  struct Cached {
    PrefixKey key, parent_key;
    PageId parent = -1;
    BlockTokens tokens;
    bool worth_keeping = false;  // Two sequences have used it, or its text has kWorthPages and more.
    // Its pages, a bit for each pool: those that are computed and worth it, and those that lie on
    // disk, or are on their way there (set_stored()).
    uint8_t pages = 0;
    uint8_t stored = 0;

    uint8_t to_store() const { return worth_keeping ? pages & ~stored : 0; }
  };
  static constexpr int32_t kWorthPages = 1024 / kPageTokens;
  // REQUIRES: contains(page).
  Cached cached(PageId page) const;
  // The page of that pool of an entry; -1: none.
  PageId page_of(PageId entry, int32_t pool) const {
    return pool == 0 ? entry : side(pool).page_of(entry);
  }
  void set_stored(PageId page, uint8_t pages) { node(page).stored = pages; }
  // All entries, the most recently used first, parents before children. Allocates.
  std::vector<PageId> newest_first() const;

  // Walks everything and checks the invariants. Called when the engine is idle, and by tests.
  void check() const;

 private:
  // Nodes lie at their page's number: a page is cached at most once.
  struct Node {
    PrefixKey key;
    PrefixKey parent_key;
    PageId parent = -1;  // -1: a first page; parent_key is the salt.
    PageId newer = -1;
    PageId older = -1;
    Clock::time_point used{};
    uint32_t mark = 0;  // == marks_: found in use by the walk that goes on.
    bool cached = false;
    bool worth = false;
    uint8_t stored = 0;
    uint64_t step = 0;
    BlockTokens tokens;
  };

  Node& node(PageId page) { return nodes_[static_cast<size_t>(page)]; }
  const Node& node(PageId page) const { return nodes_[static_cast<size_t>(page)]; }
  bool holds(PageId page, const PrefixKey& parent_key, PageId parent,
             const BlockTokens& tokens) const;
  size_t home(const PrefixKey& key) const { return key.low & (slots_.size() - 1); }
  void add_slot(PageId page);
  void remove_slot(PageId page);
  void unlink(PageId page);
  void link_newest(PageId page);
  void link_behind(PageId page, PageId newer);
  void touch_chain(PageId last);
  void mark_worth(PageId last);
  void leave(PageId page);
  bool is_watched(PageId page) const {
    return watcher_ != nullptr && cached(page).to_store() != 0;
  }
  uint8_t pages_worth_keeping(PageId page) const;
  bool watcher_waits(PageId page) const { return is_watched(page) && !watcher_->ready(); }
  void remove(PageId page);

  PagePool& pool_;  // The spine's.
  std::vector<SideCache> sides_;
  std::vector<Node> nodes_;
  std::vector<PageId> slots_;  // Open addressing, linear probing; -1 is empty. A power of two.
  PageId newest_ = -1;
  PageId oldest_ = -1;
  Clock::time_point now_{};
  int32_t count_ = 0;
  uint32_t marks_ = 0;
  Watcher* watcher_ = nullptr;
  uint64_t planned_ = 0;
  uint64_t done_ = 0;
};

}  // namespace weir::kv
