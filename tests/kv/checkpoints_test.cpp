#include "kv/checkpoints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace weir::kv {
namespace {

constexpr int32_t kFirstSlot = 10;

class World {
 public:
  explicit World(int32_t slots)
      : pool_(slots), cache_(pool_, 1000), checkpoints_(kFirstSlot, pool_, cache_) {
    for (PageId page = 0; page < 1000; ++page) entries_.push_back(page);
  }
  std::vector<int32_t> plan(Checkpoints::Use& use, int32_t begin, int32_t end,
                            int32_t known_blocks = 0) {
    checkpoints_.plan(use, begin, end, entries(known_blocks));
    std::vector<int32_t> positions;
    for (const StateMark& mark : use.planned()) {
      EXPECT_GE(mark.slot, kFirstSlot);
      EXPECT_LT(mark.slot, kFirstSlot + pool_.page_count());
      positions.push_back(mark.position);
    }
    return positions;
  }
  std::span<const PageId> entries(int32_t blocks) const {
    return std::span(entries_).first(static_cast<size_t>(blocks));
  }
  Checkpoints& checkpoints() { return checkpoints_; }

 private:
  PagePool pool_;
  SideCache cache_;
  Checkpoints checkpoints_;
  std::vector<PageId> entries_;
};

using Positions = std::vector<int32_t>;

TEST(Checkpoints, LieWhereASlicePassesAPlace) {
  World world(100);
  Checkpoints::Use use;
  Checkpoints::begin(use, 1000);
  EXPECT_EQ(world.plan(use, 0, 100), Positions());
  EXPECT_EQ(world.plan(use, 100, 512), Positions({512}));
  EXPECT_EQ(world.plan(use, 512, 980), Positions());
  EXPECT_EQ(world.plan(use, 980, 1000), Positions({992}));
  EXPECT_EQ(world.plan(use, 1000, 1023), Positions());
  EXPECT_EQ(world.plan(use, 1023, 1024), Positions({1024}));
  EXPECT_EQ(world.plan(use, 1024, 1120), Positions({1120})) << "the last of what is generated";
  use.parted = 1200;
  EXPECT_EQ(world.plan(use, 1120, 1250), Positions({1200, 1248}));
  world.checkpoints().release(use);
  EXPECT_EQ(world.checkpoints().free_count(), 100);
}

// No slice has more than it has places for; those at ends are among them.
TEST(Checkpoints, ALongSliceLeavesOutTheFirstOnes) {
  World world(100);
  Checkpoints::Use use;
  Checkpoints::begin(use, 20'000);
  use.parted = 704;
  const Positions positions = world.plan(use, 0, 19'999);
  EXPECT_LE(std::ssize(positions), Checkpoints::kMarksMax);
  EXPECT_TRUE(std::ranges::is_sorted(positions));
  EXPECT_EQ(positions.front(), 704);
  EXPECT_EQ(positions[1], 19'968 - 12 * 512);
  EXPECT_EQ(positions.back(), 19'968) << "of 512 tokens, and the end";
  world.checkpoints().release(use);
}

TEST(Checkpoints, AnEntryThatHasOneGetsNoOther) {
  World world(8);
  Checkpoints::Use a, b;
  Checkpoints::begin(a, 600);
  Checkpoints::begin(b, 600);
  EXPECT_EQ(world.plan(a, 0, 600), Positions({512, 576}));
  EXPECT_EQ(world.plan(b, 0, 600), Positions({512, 576}));
  world.checkpoints().attach(a, world.entries(16));
  EXPECT_TRUE(world.checkpoints().has(15));
  EXPECT_FALSE(world.checkpoints().has(17));
  world.checkpoints().attach(a, world.entries(18));
  world.checkpoints().attach(b, world.entries(18));
  world.checkpoints().check(std::vector<const Checkpoints::Use*>{&a, &b});
  EXPECT_EQ(world.checkpoints().free_count(), 4);
  world.checkpoints().release(b);
  EXPECT_EQ(world.checkpoints().free_count(), 6);
  EXPECT_EQ(world.plan(b, 0, 600, /*known_blocks=*/18), Positions());
  world.checkpoints().release(a);
  EXPECT_EQ(world.checkpoints().free_count(), 6);
}

TEST(Checkpoints, WhatAPlannedSliceWritesAndReadsIsHeldUntilTheNext) {
  World world(2);
  Checkpoints::Use a, b;
  Checkpoints::begin(a, 40);
  EXPECT_EQ(world.plan(a, 0, 40), Positions({32}));
  world.checkpoints().attach(a, world.entries(1));
  Checkpoints::begin(b, 3000);
  EXPECT_EQ(world.plan(b, 0, 3000), Positions({2976})) << "one slot is left";
  world.checkpoints().release(b);
  world.checkpoints().release(a);
  world.checkpoints().restore(b, 0);
  EXPECT_LT(b.source, 0);
  EXPECT_EQ(world.plan(b, 32, 64, 1), Positions({64}));
  EXPECT_GE(b.source, kFirstSlot);
  EXPECT_EQ(world.plan(a, 0, 3000), Positions()) << "one is read, one is written";
  EXPECT_EQ(world.plan(b, 64, 70, 1), Positions());
  EXPECT_LT(b.source, 0);
  EXPECT_EQ(world.plan(a, 0, 600), Positions({512, 576}));
  world.checkpoints().release(a);
  world.checkpoints().release(b);
}

}  // namespace
}  // namespace weir::kv
