// PrefixCache finds the longest known prefix of a prompt, page by page along a chain of hashes, and
// lends its pages (decision 14). Only full pages are cached. No tree: an entry is found by the
// hash of its parent's key and its own 32 tokens, and compared with both before it is believed, so
// that a collision of hashes cannot lend a wrong page.
//
// A sequence's life with it:
//   match()   when it is admitted: the pages come retained, release them as any other;
//   insert()  when one of its pages has become full (its 32 tokens are computed);
//   touch()   when it ends, before its pages are released.
// When PagePool::allocate() fails, evict() gives pages back to it.
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

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/ops.h"
#include "kv/page_pool.h"

namespace weir::kv {

inline constexpr int32_t kPageTokens = kernels::kPageTokens;

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
  // `pool` outlives the cache.
  explicit PrefixCache(PagePool& pool);
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;
  ~PrefixCache() { clear(); }

  // The key before the first page. `identity` names all that changes what a page holds besides the
  // tokens: model, adapter, media, KV format, compute mode, rope length where it matters.
  static PrefixKey salt(std::string_view identity);
  // The key of the page that holds `tokens` after what `parent` stands for.
  // REQUIRES: tokens.size() == kPageTokens.
  static PrefixKey child(const PrefixKey& parent, std::span<const int32_t> tokens);

  struct Match {
    int32_t pages = 0;  // How many were lent: the first pages * kPageTokens tokens are known.
    PrefixKey key;      // Of the last of them, `salt` if none: the parent for insert().
  };
  // Lends the longest known chain of full pages that `tokens` begins with, at most pages.size();
  // each is retained once for the caller and counts as used now. A caller that needs logits of the
  // last token must leave it out of `tokens`.
  Match match(std::span<const int32_t> tokens, const PrefixKey& salt, std::span<PageId> pages);

  struct Inserted {
    PrefixKey key;     // Of the page: the parent of the next insert().
    PageId page = -1;  // The page cached under it, -1 if its parent is not cached (any more).
  };
  // Says that `page`, which the caller holds and which nobody will write again, holds `tokens`
  // after `parent`. If another page is cached for the same, that one stays and is returned: its
  // bytes are the same, so the caller may retain() it and release() its own.
  // REQUIRES: tokens.size() == kPageTokens.
  Inserted insert(const PrefixKey& parent, std::span<const int32_t> tokens, PageId page);

  // One step of match(), for a caller who goes on later: lends the page that holds `tokens` behind
  // the cached page `parent_page` of key `parent` (-1 and a salt: the first page), retained; page
  // -1 if there is none. It does not count as use: touch() the last one. REQUIRES: tokens.size() ==
  // kPageTokens.
  Inserted next_page(const PrefixKey& parent, PageId parent_page, std::span<const int32_t> tokens);

  // The chain that ends with `key` counts as used now. Unknown keys are ignored.
  void touch(const PrefixKey& key);

  // Gives up to `pages` pages back to the pool, least recently used first, among those that nobody
  // but the cache references. Returns how many.
  int32_t evict(int32_t pages);
  // The same, of those that nobody has used after `since`. REQUIRES: `since` lies before now.
  int32_t evict_unused(Clock::time_point since, int32_t pages);
  // When the least recently used entry was used. REQUIRES: page_count() > 0.
  Clock::time_point oldest_use() const { return entry(oldest_).used; }
  // What is now, for all uses from here on. Never goes back.
  void set_time(Clock::time_point now) { now_ = now; }
  // All that can be evicted. Pages that sequences still hold are forgotten too.
  void clear();

  int32_t page_count() const { return count_; }
  // How many pages evict() could free now. Walks all entries.
  int32_t evictable_count();

  // Walks everything and checks the invariants. Called when the engine is idle, and by tests.
  void check() const;

 private:
  // Entries lie at their page's number: a page is cached at most once.
  struct Entry {
    PrefixKey key;
    PrefixKey parent_key;
    PageId parent = -1;  // -1: a first page; parent_key is the salt.
    PageId newer = -1;
    PageId older = -1;
    Clock::time_point used{};
    uint32_t mark = 0;  // == marks_: found in use by the walk that goes on.
    bool cached = false;
    std::array<int32_t, kPageTokens> tokens{};
  };

  Entry& entry(PageId page) { return entries_[static_cast<size_t>(page)]; }
  const Entry& entry(PageId page) const { return entries_[static_cast<size_t>(page)]; }
  PageId find(const PrefixKey& key) const;
  bool holds(PageId page, const PrefixKey& parent_key, PageId parent,
             std::span<const int32_t> tokens) const;
  size_t home(const PrefixKey& key) const { return key.low & (slots_.size() - 1); }
  void add_slot(PageId page);
  void remove_slot(PageId page);
  void unlink(PageId page);
  void link_newest(PageId page);
  void link_behind(PageId page, PageId newer);
  void touch_chain(PageId last);
  void remove(PageId page);

  PagePool& pool_;
  std::vector<Entry> entries_;
  std::vector<PageId> slots_;  // Open addressing, linear probing; -1 is empty. A power of two.
  PageId newest_ = -1;
  PageId oldest_ = -1;
  Clock::time_point now_{};
  int32_t count_ = 0;
  uint32_t marks_ = 0;
};

}  // namespace weir::kv
