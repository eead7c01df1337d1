// PageToucher takes the memory of pages from the system before a step needs them, on a thread of
// its own: the kernel clears what it gives, 2 MiB at a time, and a step that touches such memory
// first waits for that.
//
// Threads: owned by the engine thread; PageMemory::take() runs on the toucher's own.
//
// Invariants:
// (1) Never more is touched ahead than was asked for, in whole extents of the pool.
// (2) Nothing is touched unless look_ahead() is called: an idle engine takes no memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <thread>

#include "base/bell.h"
#include "base/ring.h"
#include "kv/page_memory.h"
#include "kv/page_pool.h"

namespace weir::kv {

class PageToucher {
 public:
  // A pool for each group of `memory`; more of them are left alone. All outlive the toucher.
  PageToucher(std::span<PagePool> pools, PageMemory& memory);
  // Waits for the piece that is being touched.
  ~PageToucher();
  PageToucher(const PageToucher&) = delete;
  PageToucher& operator=(const PageToucher&) = delete;

  // New sequences may soon be given `pages` of each group. Neither blocks nor allocates.
  void look_ahead(int32_t pages);
  // Something is left to touch. Until then no memory of free pages may go back: it would be taken
  // again, for pages that pass for cold.
  bool busy() const { return asked_ != touched_.load(std::memory_order_acquire); }

 private:
  struct Piece {
    int32_t group = 0;
    int32_t first = 0;
    int32_t count = 0;
  };

  void serve();

  const std::span<PagePool> pools_;
  PageMemory& memory_;
  SpscRing<Piece> pieces_;
  uint32_t asked_ = 0;  // Pieces so far, of the engine thread; they wrap.
  std::atomic<uint32_t> touched_{0};
  std::atomic<bool> ending_{false};
  Bell bell_;
  std::thread thread_;
};

}  // namespace weir::kv
