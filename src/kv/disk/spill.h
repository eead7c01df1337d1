// Spill: what of the prefix cache goes to disk, and when. A block goes when it leaves memory, or at
// the end, if its text is likely to come again: it was taken by another sequence, or it is part of
// one of kWorthTokens tokens.
//
// With a block that leaves go those before it in its group of eight that are not on disk: they
// leave soon after it, and lie beside it then. The bytes are copied here, into a buffer of the
// DiskCache; without a buffer the block is lost. Blocks that leave because they are unused wait for
// one.
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
  // All outlive it. REQUIRES: the layout has one group of pages.
  Spill(PrefixCache& cache, PageMemory& memory, DiskCache& disk);
  ~Spill();
  Spill(const Spill&) = delete;
  Spill& operator=(const Spill&) = delete;

  // A page is about to leave the cache, and what it holds was computed.
  void leaves(PageId page) override;
  // A buffer is there, or none will be.
  bool ready() override { return disk_.failed() || disk_.has_buffer(); }

  // All that is worth it, and waits until it is written, at most until then; the most recently
  // used first. Nothing is computed any more.
  void write_all(std::chrono::steady_clock::time_point until);

 private:
  bool write_group(PageId last);
  int32_t group_of(PageId page) const {
    return (cache_.cached(page).key.pages - 1) / kExtentBlocksMax;
  }
  PageId parent_of(PageId page) const { return cache_.cached(page).parent; }
  bool in_group(PageId page, int32_t group) const { return page >= 0 && group_of(page) == group; }

  PrefixCache& cache_;
  PageMemory& memory_;
  DiskCache& disk_;
  const int32_t blocks_max_;  // Of an extent.
};

}  // namespace weir::kv::disk
