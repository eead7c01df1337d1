#include "kv/page_toucher.h"

#include <pthread.h>

#include "base/check.h"

namespace weir::kv {

namespace {

// Pieces that wait. A step of 512 tokens needs one of each group; more where free pages are
// scattered. What finds no place is asked for again after the next step.
constexpr size_t kPiecesMax = 64;

}  // namespace

PageToucher::PageToucher(std::span<PagePool> pools, PageMemory& memory)
    : pools_(pools.first(memory.groups().size())),
      memory_(memory),
      pieces_(kPiecesMax),
      thread_([this] { serve(); }) {
  (void)::pthread_setname_np(thread_.native_handle(), "weir-pages");
}

PageToucher::~PageToucher() {
  ending_.store(true, std::memory_order_release);
  bell_.ring();
  thread_.join();
}

void PageToucher::look_ahead(int32_t pages) {
  const uint32_t before = asked_;
  for (size_t g = 0; g < pools_.size(); ++g) {
    while (true) {
      const PagePool::Run run = pools_[g].cold_run(pages);
      if (run.count == 0) break;
      if (!pieces_.try_push({static_cast<int32_t>(g), run.first, run.count})) break;
      pools_[g].warm(run);
      ++asked_;
    }
  }
  if (asked_ != before) bell_.ring();
}

void PageToucher::serve() {
  while (true) {
    // Before we look at anything: whatever happens after our look changes the bell.
    const uint32_t bell = bell_.count();
    while (!ending_.load(std::memory_order_acquire)) {
      const std::optional<Piece> piece = pieces_.try_pop();
      if (!piece) break;
      memory_.take(piece->group, piece->first, piece->count);
      touched_.fetch_add(1, std::memory_order_release);
    }
    if (ending_.load(std::memory_order_acquire)) return;
    bell_.sleep(bell, Bell::Clock::time_point::max());
  }
}

}  // namespace weir::kv
