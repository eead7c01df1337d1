// SequenceMemory with pages alone; those with states are in sequence_states_test.cpp.
#include "kv/sequence_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kv/sequence_memory_world.h"

namespace weir::kv {
namespace {

TEST(SequenceMemory, GivesAWindowsPageBackWhenNoPositionToComeSeesIt) {
  Memory memory({{0, 64}, {64, 64}}, /*cache=*/false);
  const auto seq = memory.begin(text_of(numbers(0, 10)));
  for (int32_t i = 0; i < 320; ++i) {
    memory.compute(*seq, 1);
    memory.check();
    // The block that the position lies in, and the 63 positions before it.
    EXPECT_EQ(memory.memory().held_pages(1), std::min(i / 32 + 1, 3));
    EXPECT_EQ(memory.memory().held(), i / 32 + 1);
  }
  memory.end(*seq);
  EXPECT_EQ(memory.memory().held_pages(1), 0);
}

TEST(SequenceMemory, AStepHoldsAllPagesThatItsRowsSee) {
  Memory memory({{0, 64}, {64, 64}});
  const auto seq = memory.begin(text_of(numbers(0, 12)));
  memory.compute(*seq, 320);
  EXPECT_EQ(memory.memory().held_pages(1), 10);
  memory.compute(*seq, 1);
  EXPECT_EQ(memory.memory().held_pages(1), 3);
  memory.end(*seq);
}

TEST(SequenceMemory, ABeginningIsFoundThoughALongerTextHasLeftIt) {
  Memory memory({{0, 64}, {64, 64}});
  std::vector<int32_t> blocks = numbers(0, 20);
  EXPECT_EQ(memory.run(text_of(blocks, 1)), 0);
  blocks.resize(8);
  blocks.push_back(77);
  EXPECT_EQ(memory.run(text_of(blocks, 5)), 8 * kPageTokens);
  memory.check();
}

// The pages of windows that were left go first; then a match ends where they are still there.
TEST(SequenceMemory, AMatchEndsWhereTheLastWindowIsThere) {
  Memory memory({{0, 64}, {64, 16}});
  EXPECT_EQ(memory.run(text_of(numbers(0, 10), 1)), 0);
  EXPECT_EQ(memory.run(text_of(numbers(100, 10), 1)), 0);  // Takes pages that the first has left,
  std::vector<int32_t> shorter = numbers(0, 6);
  EXPECT_LT(memory.run(text_of(shorter, 1)), 6 * kPageTokens);
  EXPECT_EQ(memory.run(text_of(numbers(200, 10), 1)), 0);               // and the second,
  EXPECT_EQ(memory.run(text_of(numbers(0, 10), 1)), 10 * kPageTokens);  // not those of its end.
  memory.check();
}

// What had to be computed once more is there for the third, though others come in between.
TEST(SequenceMemory, ABeginningThatWasComputedAgainIsKept) {
  Memory memory({{0, 64}, {64, 16}});
  const auto with = [](int32_t end) {
    std::vector<int32_t> blocks = numbers(0, 6);
    for (int32_t i = 0; i < 5; ++i) blocks.push_back(1000 + 10 * end + i);
    return text_of(blocks, 1);
  };
  EXPECT_EQ(memory.run(with(1)), 0);
  EXPECT_EQ(memory.run(text_of(numbers(100, 10), 1)), 0);
  EXPECT_LT(memory.run(with(2)), 6 * kPageTokens);
  for (int32_t i = 3; i < 9; ++i) EXPECT_EQ(memory.run(with(i)), 6 * kPageTokens) << i;
  memory.check();
}

TEST(SequenceMemory, EvictingAnEntryGivesItsWindowsPagesBack) {
  Memory memory({{0, 12}, {64, 12}});
  EXPECT_EQ(memory.run(text_of(numbers(0, 10), 1)), 0);
  EXPECT_EQ(memory.run(text_of(numbers(100, 11), 1)), 0);
  memory.check();
  EXPECT_EQ(memory.memory().cache()->page_count(), 11);
  EXPECT_LE(memory.memory().cached_pages(1), 11);
  memory.memory().forget_shared();
  EXPECT_EQ(memory.memory().pools()[1].free_count(), 12);
}

TEST(SequenceMemory, HotPagesAreThoseOfTheFirstBlockAndOfBlocksThatAreNotComplete) {
  Memory memory({{0, 64}, {1, 20, /*hot=*/true}});
  const auto seq = memory.begin(text_of(numbers(0, 10), 5));
  memory.compute(*seq, 100);
  EXPECT_EQ(memory.memory().held_pages(1), 4);
  for (int32_t i = 100; i < 160; ++i) {
    memory.compute(*seq, 1);
    EXPECT_EQ(memory.memory().held_pages(1), 2) << i;
    memory.check();
  }
  // A draft beyond the block's end: its hot page stays until the last token is known to be right.
  memory.memory().grow(seq->holding, 164);
  memory.memory().leave(seq->holding, 159);
  EXPECT_EQ(memory.memory().held_pages(1), 3);
  memory.end(*seq);
  EXPECT_EQ(memory.memory().held_pages(1), 0);
  memory.check();
}

// What is shared is complete: who goes on from it needs the first block's hot page alone.
TEST(SequenceMemory, AMatchNeedsTheFirstBlocksHotPage) {
  Memory memory({{0, 64}, {1, 20, /*hot=*/true}});
  EXPECT_EQ(memory.run(text_of(numbers(0, 9), 1)), 0);
  EXPECT_EQ(memory.memory().cached_pages(1), 1);
  const auto seq = memory.begin(text_of(numbers(0, 12), 3));
  EXPECT_EQ(memory.match(*seq), 9 * kPageTokens);
  EXPECT_EQ(memory.memory().held_pages(1), 1);
  memory.compute(*seq, 40);
  EXPECT_EQ(memory.memory().held_pages(1), 3);
  memory.check();
  memory.end(*seq);
  // Without it all is computed again, and then it is there.
  memory.memory().cache()->side(1).evict(1);
  EXPECT_EQ(memory.run(text_of(numbers(0, 9), 1)), 0);
  EXPECT_EQ(memory.run(text_of(numbers(0, 9), 1)), 9 * kPageTokens);
  memory.check();
}

constexpr Simulation::Crowd kCrowd = {.running = 5, .rows = 90, .blocks = 11, .fills = 2};

// Pools as small as the bound lets them be.
Simulation simulation_of(uint32_t seed) {
  constexpr MemoryLoad kLoad = {.running_max = kCrowd.running,
                                .rows_max = kCrowd.running * kCrowd.rows,
                                .loads = kCrowd.fills};
  const int32_t blocks = 20 + static_cast<int32_t>(seed % 5) * 11;
  std::vector<PageGroup> groups = {{0, blocks}};
  for (const int32_t window : seed % 2 == 0 ? std::vector{100, 33} : std::vector{64})
    groups.push_back(
        {window, static_cast<int32_t>(std::min(blocks + window_pages_loaded(window, kLoad),
                                               window_pages_held(window, kLoad)))});
  if (seed % 3 == 0)
    groups.push_back(
        {1, static_cast<int32_t>(window_pages_held(1, kLoad)) + kCrowd.running + 2, /*hot=*/true});
  return {seed, kCrowd, std::move(groups)};
}

TEST(SequenceMemory, RandomSequencesFindWhatIsTheirs) {
  int64_t matched = 0, filled = 0;
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Simulation simulation = simulation_of(seed);
    for (int i = 0; i < 600 && !testing::Test::HasFailure(); ++i) simulation.step();
    simulation.finish();
    if (testing::Test::HasFailure()) return;
    matched += simulation.matched();
    filled += simulation.filled();
  }
  EXPECT_GT(matched, 10'000);
  EXPECT_GT(filled, 10'000);
}

}  // namespace
}  // namespace weir::kv
