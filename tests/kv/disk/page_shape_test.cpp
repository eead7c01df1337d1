#include "kv/disk/page_shape.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kv/disk/disk_cache.h"
#include "kv/disk/disk_world.h"

namespace weir::kv::disk {
namespace {

bool same(const BlockRange& range, int32_t first, int32_t end) {
  return range.first == first && range.end == end;
}

TEST(PageShape, EachGroupHasItsRule) {
  const PageShape shape = all_kinds_of_pages();  // All, a window of 80 tokens, hot pages, states.
  EXPECT_EQ(shape.groups, 4);
  EXPECT_TRUE(same(shape.needed(0, 9), 0, 9));
  EXPECT_TRUE(same(shape.needed(1, 9), 6, 9)) << "position 288 sees 209, in block 6";
  EXPECT_TRUE(same(shape.needed(1, 2), 0, 2));
  EXPECT_TRUE(same(shape.needed(2, 9), 0, 1));
  EXPECT_TRUE(same(shape.needed(3, 9), 8, 9));
  for (int32_t group = 0; group < 4; ++group) EXPECT_TRUE(same(shape.needed(group, 0), 0, 0));
  EXPECT_EQ(shape.side_bytes(9), 3 * 512 + 640 + 3072);
  EXPECT_EQ(shape.bytes_of(page_bit(0) | page_bit(3)), 1024 + 3072);
}

// Against a look at each page that is needed.
TEST(PageShape, ATextEndsWhereAllIsThere) {
  std::mt19937 random(1);
  for (const PageShape& shape : {small_pages(), all_kinds_of_pages()}) {
    int32_t ends = 0;
    for (int32_t round = 0; round < 2000; ++round) {
      std::vector<PageSet> pages(random() % 24);
      for (PageSet& each : pages) {
        each = shape.all();
        for (int32_t g = 0; g < shape.groups; ++g)
          if (random() % (g == 0 ? 30 : 4) == 0) each &= static_cast<PageSet>(~page_bit(g));
      }
      int32_t expected = 0;
      for (int32_t end = 1; end <= std::ssize(pages); ++end) {
        bool whole = true;
        for (int32_t g = 0; g < shape.groups; ++g)
          for (int32_t b = shape.needed(g, end).first; b < shape.needed(g, end).end; ++b)
            whole = whole && has_page(pages[static_cast<size_t>(b)], g);
        if (whole) expected = end;
      }
      EXPECT_EQ(shape.last_end(pages), expected);
      ends += expected;
    }
    EXPECT_GT(ends, 2000);
  }
}

TEST(PageShape, FewTextsAreReadAtOnceThatNeedMuch) {
  EXPECT_EQ(loads_at_once(small_pages()), kLoadsMax);
  EXPECT_EQ(loads_at_once(all_kinds_of_pages()), kLoadsMax);
  PageShape large = all_kinds_of_pages();
  large.page_bytes[3] = int64_t{100} << 20;
  EXPECT_EQ(loads_at_once(large), 2);
  large.page_bytes[3] = int64_t{1} << 30;
  EXPECT_EQ(loads_at_once(large), 1);
}

// Three buffers to write from, two of the store, and 128 bytes for each block that there is room
// for.
TEST(PageShape, TheMemoryOfACacheFollowsFromItsPages) {
  const int64_t extent = kBlockBytes + 8 * 1024;
  EXPECT_EQ(extent_bytes_max(small_pages()), extent);
  EXPECT_EQ(cache_memory(small_pages(), 1 << 20), 5 * extent + 1025 * kIndexBytes);
  PageShape states = PageShape::of(std::vector<MemoryLayout::Group>{{}}, int64_t{20} << 20);
  EXPECT_EQ(payload_bytes_max(states), int64_t{20} << 20) << "one state, more than a buffer has else";
  EXPECT_EQ(cache_memory(states, 1 << 20), 5 * extent_bytes_max(states) + 2049 * kIndexBytes)
      << "eight blocks without bytes have a head of 4 KiB";
}

}  // namespace
}  // namespace weir::kv::disk
