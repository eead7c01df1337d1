#include "kv/page_toucher.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "kv/kv_cache.h"

namespace weir::kv {
namespace {

using namespace std::chrono_literals;

// A page of a layer is a huge page, so that what is touched is what was asked for.
constexpr int32_t kHeads = 128, kHeadDim = 128;
static_assert(int64_t{kHeads} * kHeadDim * 2 * 2 * kPageTokens == int64_t{kHugePageBytes});

class Touched {
 public:
  explicit Touched(int32_t pages, int32_t window_pages = 0)
      : memory_(std::move(*KvCache::create(needs(window_pages), kernels::FloatType::kF16, pages))) {
    for (const PageGroup& group : memory_.groups()) pools_.emplace_back(group.pages);
  }
  static std::vector<MemoryNeed> needs(int32_t window) {
    std::vector<MemoryNeed> made = {PagedNeed{kHeads, kHeadDim, kHeadDim},
                                    PagedNeed{kHeads, kHeadDim, kHeadDim}};
    if (window > 0) made.push_back(PagedNeed{kHeads, kHeadDim, kHeadDim, window * kPageTokens});
    return made;
  }
  // Whether the memory of a layer's page is there.
  bool resident(int32_t layer, int32_t page) const {
    const auto system_page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> there(kHugePageBytes / system_page);
    uint8_t* const begin = memory_.layer(layer).base + page * memory_.layer(layer).page_bytes;
    EXPECT_EQ(::mincore(begin, kHugePageBytes, there.data()), 0);
    for (const unsigned char one : there)
      if ((one & 1) == 0) return false;
    return true;
  }
  int32_t resident_pages(int32_t layer) const {
    int32_t count = 0;
    for (PageId page = 0; page < memory_.page_count(memory_.group_of(layer)); ++page)
      count += resident(layer, page) ? 1 : 0;
    return count;
  }
  static void await(const PageToucher& toucher) {
    const Clock::time_point end = Clock::now() + 60s;
    while (toucher.busy() && Clock::now() < end) std::this_thread::sleep_for(1ms);
    ASSERT_FALSE(toucher.busy());
  }
  KvCache& memory() { return memory_; }
  std::vector<PagePool>& pools() { return pools_; }

 private:
  KvCache memory_;
  std::vector<PagePool> pools_;
};

TEST(PageToucher, TakesWhatIsAskedForOfEachGroupAndNoMore) {
  Touched touched(24, /*window_pages=*/2);
  PageToucher toucher(touched.pools(), touched.memory());
  EXPECT_FALSE(toucher.busy());
  std::this_thread::sleep_for(20ms);
  for (int32_t layer = 0; layer < 3; ++layer) EXPECT_EQ(touched.resident_pages(layer), 0);
  toucher.look_ahead(5);
  Touched::await(toucher);
  for (int32_t layer = 0; layer < 3; ++layer) {
    EXPECT_EQ(touched.resident_pages(layer), 8) << "an extent, in layer " << layer;
    EXPECT_TRUE(touched.resident(layer, 0) && touched.resident(layer, 7));
  }
  toucher.look_ahead(5);
  EXPECT_FALSE(toucher.busy()) << "nothing is left to touch";
  std::vector<PageId> pages(3);
  ASSERT_TRUE(touched.pools()[0].allocate(pages));
  toucher.look_ahead(5);
  Touched::await(toucher);
  EXPECT_EQ(touched.resident_pages(0), 16);
  EXPECT_EQ(touched.resident_pages(2), 8) << "the window's are free still";
}

TEST(PageToucher, LeavesWhatPagesHold) {
  Touched touched(16);
  std::vector<PageId> pages(8);
  ASSERT_TRUE(touched.pools()[0].allocate(pages));
  uint8_t* const last = touched.memory().layer(1).base + 8 * touched.memory().layer(1).page_bytes;
  std::memset(last, 7, kHugePageBytes);  // As a row whose sequence has ended may write.
  PageToucher toucher(touched.pools(), touched.memory());
  toucher.look_ahead(8);
  Touched::await(toucher);
  EXPECT_EQ(touched.resident_pages(1), 8);
  for (size_t i = 0; i < kHugePageBytes; ++i) ASSERT_EQ(last[i], 7) << i;
}

TEST(PageToucher, EndsWhileThereIsWork) {
  Touched touched(64);
  for (int i = 0; i < 20; ++i) {
    PageToucher toucher(touched.pools(), touched.memory());
    toucher.look_ahead(64);
  }
}

// Pages scattered one extent in two: more pieces than wait at once.
TEST(PageToucher, AsksAgainForWhatFoundNoPlace) {
  constexpr int32_t kPages = 8 * 2 * 100;
  KvCache memory =
      std::move(*KvCache::create({PagedNeed{1, 8, 8}}, kernels::FloatType::kF16, kPages));
  std::vector<PagePool> pools;
  pools.emplace_back(kPages);
  for (PageId page = -1; page < kPages - 1; page += 16) {
    PageId taken = -1;
    ASSERT_TRUE(pools[0].allocate({&taken, 1}, page));
    ASSERT_EQ(taken, page + 1);
  }
  PageToucher toucher(pools, memory);
  const Clock::time_point end = Clock::now() + 60s;
  while (pools[0].warm_free_count() < kPages / 2 && Clock::now() < end) toucher.look_ahead(kPages);
  Touched::await(toucher);
  EXPECT_EQ(pools[0].warm_free_count(), kPages / 2);
  pools[0].check();
}

}  // namespace
}  // namespace weir::kv
