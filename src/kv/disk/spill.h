// Spill: what of the prefix cache goes to disk, and when. A block goes when it leaves memory, or at
// the end, if its text is likely to come again: it was taken by another sequence, or it is part of
// one of kWorthTokens tokens. What layers remember beside the spine, pages of windows and states,
// goes only where a prompt or an answer has ended or texts have parted (kv/side_cache.h), and only if
// a text that ends there is read faster than computed: with the bytes of all that is needed to go on.
// The page of the spine does not depend on where a text ends, since all longer ones need it: it goes
// if it is read faster than its own tokens are computed, which it is wherever any end of a text is.
//
// With a page that leaves go those of its block, and of the blocks before it in its group of eight,
// that are not on disk: they leave soon after it, and lie beside it then. The bytes are copied here,
// on the engine's thread (kWriteBytesMax says what that takes), into a buffer of the DiskCache;
// without a buffer they are lost. Blocks that leave because they are unused wait for one.
//
// Threads: the engine's.
#pragma once

#include <chrono>
#include <cstdint>

#include "kv/disk/disk_cache.h"
#include "kv/page_memory.h"
#include "kv/prefix_cache.h"

namespace weir::kv::disk {

class Spill final : public PrefixCache::Watcher {
 public:
  // All outlive it.
  Spill(PrefixCache& cache, PageMemory& memory, DiskCache& disk);
  ~Spill();
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  // An entry is about to leave the cache, or a page of it, and what they hold was computed.
  void leaves(PageId entry) override;
  // A buffer is there, or none will be.
  bool ready() override { return disk_.failed() || disk_.has_buffer(); }

  // All that is worth it, and waits until it is written, at most until then; the most recently
  // used first. Nothing is computed any more.
  void write_all(std::chrono::steady_clock::time_point until);

 private:
  bool write_group(PageId last);
  PageSet to_store(const PrefixCache::Cached& entry) const;
  bool spine_pays() const;
  bool end_pays(int32_t end) const;
  int32_t group_of(PageId page) const {
    return (cache_.cached(page).key.pages - 1) / kExtentBlocksMax;
  }
  PageId parent_of(PageId page) const { return cache_.cached(page).parent; }
  bool in_group(PageId page, int32_t group) const { return page >= 0 && group_of(page) == group; }

  PrefixCache& cache_;
  PageMemory& memory_;
  DiskCache& disk_;
};

}  // namespace weir::kv::disk
