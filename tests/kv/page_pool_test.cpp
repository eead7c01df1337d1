#include "kv/page_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace weir::kv {
namespace {

std::vector<PageId> allocate(PagePool& pool, size_t count, PageId after = -1) {
  std::vector<PageId> pages(count);
  EXPECT_TRUE(pool.allocate(pages, after));
  return pages;
}

bool is_run(const std::vector<PageId>& pages) {
  for (size_t i = 1; i < pages.size(); ++i)
    if (pages[i] != pages[i - 1] + 1) return false;
  return true;
}

TEST(PagePool, HandsOutEveryPageOnceAndRefusesMore) {
  for (const int32_t count : {0, 1, 7, 8, 9, 64, 100}) {
    PagePool pool(count);
    std::vector<PageId> pages = allocate(pool, static_cast<size_t>(count));
    std::sort(pages.begin(), pages.end());
    for (int32_t i = 0; i < count; ++i) EXPECT_EQ(pages[static_cast<size_t>(i)], i);
    PageId more = -7;
    EXPECT_FALSE(pool.allocate({&more, 1}));
    EXPECT_EQ(more, -7);
    EXPECT_EQ(pool.free_count(), 0);
    pool.check();
  }
}

TEST(PagePool, RefusesWithoutTakingAnything) {
  PagePool pool(10);
  allocate(pool, 6);
  std::vector<PageId> pages(5, -7);
  EXPECT_FALSE(pool.allocate(pages));
  EXPECT_EQ(pages, std::vector<PageId>(5, -7));
  EXPECT_EQ(pool.free_count(), 4);
}

TEST(PagePool, GivesAscendingRuns) {
  PagePool pool(256);
  EXPECT_TRUE(is_run(allocate(pool, 100)));
  EXPECT_TRUE(is_run(allocate(pool, 40)));
}

TEST(PagePool, LetsNeighboursGrowBehindTheirLastPages) {
  PagePool pool(64);
  std::vector<PageId> a = allocate(pool, 1), b = allocate(pool, 1);
  for (int i = 0; i < 7; ++i) {
    a.push_back(allocate(pool, 1, a.back())[0]);
    b.push_back(allocate(pool, 1, b.back())[0]);
  }
  EXPECT_TRUE(is_run(a));
  EXPECT_TRUE(is_run(b));
}

TEST(PagePool, FindsTheRunThatFitsBetweenHeldPages) {
  PagePool pool(64);
  const std::vector<PageId> pages = allocate(pool, 64);
  for (const PageId page : pages)
    if ((page >= 8 && page < 16) || page >= 32) pool.release(page);
  const std::vector<PageId> run = allocate(pool, 20);
  EXPECT_EQ(run.front(), 32);
  EXPECT_TRUE(is_run(run));
  EXPECT_EQ(allocate(pool, 3), (std::vector<PageId>{8, 9, 10}));
}

TEST(PagePool, UsesSinglePagesWhenNoExtentIsFree) {
  PagePool pool(40);
  const std::vector<PageId> pages = allocate(pool, 40);
  for (const PageId page : pages)
    if (page % 3 == 0) pool.release(page);
  std::vector<PageId> got = allocate(pool, 14);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], static_cast<PageId>(i) * 3);
  pool.check();
}

TEST(PagePool, KeepsASharedPageUntilItsLastReference) {
  PagePool pool(4);
  const PageId page = allocate(pool, 1)[0];
  pool.retain(page);
  pool.release(page);
  EXPECT_EQ(pool.refs(page), 1);
  EXPECT_EQ(pool.free_count(), 3);
  pool.release(page);
  EXPECT_EQ(pool.free_count(), 4);
}

TEST(PagePool, ColdAndIdlePagesMakeRunsAroundTheFirstThatIsWarm) {
  const auto at = [](int s) { return Clock::time_point(std::chrono::seconds(s)); };
  PagePool pool(64);
  pool.set_time(at(1));
  const std::vector<PageId> early = allocate(pool, 10), held = allocate(pool, 2, 19);
  EXPECT_EQ(held, (std::vector<PageId>{20, 21}));
  const std::vector<PageId> late = allocate(pool, 3, 39);
  EXPECT_EQ(pool.warm_count(), 15);
  for (const PageId page : early) pool.release(page);
  pool.set_time(at(2));
  for (const PageId page : late) pool.release(page);
  EXPECT_EQ(pool.warm_free_count(), 13);

  EXPECT_EQ(pool.idle_run(at(0), 64, 8).count, 0) << "none has been free for so long";
  const auto expect_run = [&](Clock::time_point before, int32_t warm_max, PagePool::Run expected) {
    const PagePool::Run run = pool.idle_run(before, warm_max, 8);
    EXPECT_EQ(run.first, expected.first);
    EXPECT_EQ(run.count, expected.count);
    EXPECT_EQ(run.warm, expected.warm);
    pool.chill(run);
    pool.check();
  };
  expect_run(at(1), 4, {0, 4, 4});
  expect_run(at(1), 64, {0, 20, 6});  // Up to the pages that are held.
  EXPECT_EQ(pool.idle_run(at(1), 64, 8).count, 0);
  expect_run(at(2), 64, {32, 32, 3});  // From 8 cold ones before the first.
  EXPECT_EQ(pool.warm_count(), 2);
  EXPECT_EQ(pool.warm_free_count(), 0);
  EXPECT_EQ(allocate(pool, 1)[0], 0) << "a cold page is handed out like any other";
  EXPECT_EQ(pool.warm_count(), 3);
}

TEST(PagePool, ColdExtentsThatAreHandedOutNextAreFoundInTheirOrder) {
  PagePool pool(61);  // Seven extents, and one that serves as single pages.
  EXPECT_EQ(pool.cold_run(0).count, 0);
  const auto expect_run = [&](int32_t pages, PageId first, int32_t count) {
    const PagePool::Run run = pool.cold_run(pages);
    ASSERT_EQ(run.count, count);
    if (count > 0) {
      EXPECT_EQ(run.first, first);
    }
    pool.warm(run);
    pool.check();
  };
  expect_run(9, 0, 16);
  expect_run(9, 0, 0);
  EXPECT_EQ(pool.warm_free_count(), 16);
  const std::vector<PageId> taken = allocate(pool, 3);
  EXPECT_EQ(taken.front(), 0) << "what is warm goes first";
  expect_run(9, 16, 8);  // The rest of the first extent is left to its sequence.
  allocate(pool, 8, 31);
  expect_run(24, 24, 8);
  expect_run(32, 40, 8);  // After the extent that is held.
  expect_run(1000, 48, 8);
  expect_run(1000, 0, 0);
  EXPECT_EQ(pool.warm_count(), 56);
}

TEST(PagePool, PagesMadeWarmInVainBecomeDueAsIfTheyHadBeenReleased) {
  const auto at = [](int s) { return Clock::time_point(std::chrono::seconds(s)); };
  PagePool pool(32);
  pool.set_time(at(5));
  pool.warm(pool.cold_run(16));
  EXPECT_EQ(pool.idle_run(at(4), 64, 0).count, 0);
  const PagePool::Run run = pool.idle_run(at(5), 64, 0);
  EXPECT_EQ(run.warm, 16);
  pool.chill(run);
  EXPECT_EQ(pool.warm_count(), 0);
}

TEST(PagePoolDeathTest, StopsAtAPageReleasedTwice) {
  PagePool pool(4);
  const PageId page = allocate(pool, 1)[0];
  pool.release(page);
  EXPECT_DEATH(pool.release(page), "refs");
  EXPECT_DEATH(pool.retain(page), "refs");
}

// A model of the pool, reference counts alone, runs beside it.
TEST(PagePool, SurvivesRandomOperations) {
  constexpr int32_t kPages = 203;
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    PagePool pool(kPages);
    std::vector<int32_t> refs(kPages, 0);
    std::vector<PageId> held;  // Once for each reference.
    for (int step = 0; step < 2000; ++step) {
      const uint32_t what = random() % 5;
      pool.set_time(Clock::time_point(std::chrono::seconds(step)));
      if (what == 4) {
        const Clock::time_point before(std::chrono::seconds(random() % 2 == 0 ? step - 9 : step));
        const int32_t most = 1 + static_cast<int32_t>(random() % 9), warm = pool.warm_count();
        const PagePool::Run run = pool.idle_run(before, most, 3);
        ASSERT_LE(run.warm, most);
        ASSERT_EQ(run.warm > 0, run.count > 0);
        for (PageId page = run.first; page < run.first + run.count; ++page)
          ASSERT_EQ(refs[static_cast<size_t>(page)], 0);
        pool.chill(run);
        ASSERT_EQ(pool.warm_count(), warm - run.warm);
        const bool all_due = before == Clock::time_point(std::chrono::seconds(step));
        if (run.count == 0 && all_due) {
          ASSERT_EQ(pool.warm_free_count(), 0) << "all that is free is found";
        }
      } else if (what == 0) {
        std::vector<PageId> pages(random() % 24);
        const auto free = static_cast<size_t>(std::count(refs.begin(), refs.end(), 0));
        const PageId after = held.empty() ? -1 : held[random() % held.size()];
        ASSERT_EQ(pool.allocate(pages, after), pages.size() <= free);
        if (pages.size() > free) continue;
        for (const PageId page : pages) {
          ASSERT_EQ(refs[static_cast<size_t>(page)]++, 0);
          held.push_back(page);
        }
      } else if (!held.empty()) {
        const size_t i = random() % held.size();
        const PageId page = held[i];
        if (what == 1) {
          pool.retain(page);
          ++refs[static_cast<size_t>(page)];
          held.push_back(page);
        } else {
          pool.release(page);
          --refs[static_cast<size_t>(page)];
          held[i] = held.back();
          held.pop_back();
        }
        ASSERT_EQ(pool.refs(page), refs[static_cast<size_t>(page)]);
      }
      ASSERT_EQ(pool.free_count(), std::count(refs.begin(), refs.end(), 0));
      if (step % 16 == 0) pool.check();
    }
    for (const PageId page : held) pool.release(page);
    pool.check();
    EXPECT_EQ(pool.free_count(), kPages);
  }
}

}  // namespace
}  // namespace weir::kv
