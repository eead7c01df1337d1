// SequenceMemory where layers have states: what a text finds of those before it, and that each goes
// on from the state that its own tokens have left.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "kv/sequence_memory.h"
#include "kv/sequence_memory_world.h"

namespace weir::kv {
namespace {

constexpr int32_t kMany = 64;

Memory with_checkpoints(int32_t checkpoints, int32_t blocks = 400) {
  return Memory({{.pages = blocks}}, /*cache=*/true, {.running = 4, .checkpoints = checkpoints});
}

// Tokens of their own.
std::vector<int32_t> text(int32_t tokens, int32_t first = 0) { return numbers(first, tokens); }

std::vector<int32_t> joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

SideCache& checkpoints_of(Memory& memory) { return memory.memory().cache()->side(1); }

// A slot from begin() to release(). Without checkpoints nothing is shared: no sequence has the
// state that belongs to the end of a shared block.
TEST(SequenceMemoryStates, WithoutCheckpointsEachSequenceHasASlotAndSharesNothing) {
  const std::vector<PageGroup> groups = {{.pages = 40}};
  SequenceMemory memory(groups, /*prefix_cache=*/true, {.running = 2});
  EXPECT_EQ(memory.cache(), nullptr);
  const auto salt = PrefixCache::salt({});
  Text text;
  text.tokens.assign(100, 7);
  std::vector<Holding> holdings(3);
  for (Holding& holding : holdings) {
    holding.reserve(1, 40);
    EXPECT_TRUE(holding.empty());
  }
  const auto run = [&](Holding& holding) {
    memory.begin(holding, salt);
    EXPECT_FALSE(holding.empty());
    EXPECT_EQ(memory.match(holding, text, 0, 99), 0);
    memory.grow(holding, 100);
    memory.plan(holding, text, 0, 100);
    EXPECT_TRUE(holding.view().marks.empty());
    memory.share(holding, text, 100);
    EXPECT_EQ(holding.shared_blocks(), 0);
  };
  run(holdings[0]);
  run(holdings[1]);
  EXPECT_NE(holdings[0].view().state, holdings[1].view().state);
  const int32_t slot = holdings[0].view().state;
  memory.release(holdings[0]);
  EXPECT_TRUE(holdings[0].empty());
  run(holdings[2]);
  EXPECT_EQ(holdings[2].view().state, slot);
  const std::vector<const Holding*> open = {&holdings[1], &holdings[2]};
  memory.check(open);
  memory.release(holdings[1]);
  memory.release(holdings[2]);
  memory.check({});
  EXPECT_EQ(memory.held(), 0);
}

TEST(SequenceMemoryStates, ANextTurnGoesOnFromTheEndOfTheAnswer) {
  for (const int32_t prompt : {1, 31, 32, 33, 500, 1500, 1536}) {
    Memory memory = with_checkpoints(kMany);
    std::vector<int32_t> turn = text(prompt + 200);
    const auto seq = memory.begin(turn, prompt);
    EXPECT_EQ(memory.match(*seq), 0);
    memory.compute(*seq, prompt);
    // An answer's token is known a step after it is planned.
    for (int32_t i = prompt; i < prompt + 200; ++i) memory.compute(*seq, 1, /*shared=*/i);
    memory.end(*seq);
    memory.check();
    turn = joined(turn, text(100, 10'000));
    EXPECT_GE(memory.run(turn), prompt + 200 - 64) << prompt;
    EXPECT_EQ(memory.run(turn), (prompt + 299) / 32 * 32) << "the same once more";
    memory.check();
  }
}

TEST(SequenceMemoryStates, ASliceLeavesOneEvery512TokensAndAtTheEndOfThePrompt) {
  Memory memory = with_checkpoints(kMany);
  const auto seq = memory.begin(text(1600), /*prompt=*/1500);
  memory.compute(*seq, 1500);
  std::vector<int32_t> positions;
  for (const StateMark& mark : seq->holding.view().marks) positions.push_back(mark.position);
  EXPECT_EQ(positions, (std::vector<int32_t>{512, 1024, 1472}));
  EXPECT_EQ(memory.memory().checkpoints(), 3);
  // What is generated has one that moves, and those every 512 tokens.
  for (int32_t i = 0; i < 100; ++i) memory.compute(*seq, 1);
  memory.check();
  EXPECT_EQ(memory.memory().checkpoints(), 5);  // 1536, 1600
  memory.end(*seq);
  EXPECT_EQ(memory.run(joined(text(1501), text(50, 5000))), 1472);
  EXPECT_EQ(memory.run(joined(text(1300), text(50, 6000))), 1024);
}

TEST(SequenceMemoryStates, AnAnswersLastOneMovesUnlessAnotherTextHasUsedIt) {
  Memory memory = with_checkpoints(kMany);
  const auto seq = memory.begin(text(600), /*prompt=*/10);
  memory.compute(*seq, 10);
  while (seq->computed < 200) memory.compute(*seq, 1);
  EXPECT_EQ(memory.memory().checkpoints(), 1);
  EXPECT_EQ(memory.run(joined(text(200), text(40, 5000))), 192);
  while (seq->computed < 600) memory.compute(*seq, 1);
  memory.check();
  EXPECT_EQ(memory.run(joined(text(200), text(40, 6000))), 192);
  // 192, 512, 576, and the ends of the two others: 224, in blocks of their own.
  EXPECT_EQ(memory.memory().checkpoints(), 5);
  memory.end(*seq);
}

// Two texts part after a thousand tokens, where neither has an end: the second leaves one there.
TEST(SequenceMemoryStates, WhereTextsPartTheNextOneGoesOn) {
  Memory memory = with_checkpoints(kMany);
  const std::vector<int32_t> system = text(1000);
  EXPECT_EQ(memory.run(joined(system, text(300, 5000))), 0);
  const int64_t rows = memory.rows();
  EXPECT_EQ(memory.run(joined(system, text(300, 6000))), 512);
  EXPECT_EQ(memory.rows() - rows, 1300 - 512);
  EXPECT_EQ(memory.run(joined(system, text(300, 7000))), 992);
  memory.check();
  // 1,000 tokens once, and what each has for itself.
  EXPECT_EQ(memory.memory().cached(), 31 + 3 * 9);
}

// Pages are still known whose states are not: what is computed once more is there for all again,
// and takes no second pages.
TEST(SequenceMemoryStates, ATextThatHasLostItsCheckpointsSharesAgain) {
  Memory memory = with_checkpoints(kMany);
  const std::vector<int32_t> first = text(1000);
  EXPECT_EQ(memory.run(first), 0);
  checkpoints_of(memory).evict(kMany);
  EXPECT_EQ(memory.memory().checkpoints(), 0);
  const auto seq = memory.begin(joined(first, text(200, 5000)));
  EXPECT_EQ(memory.match(*seq), 0);
  EXPECT_EQ(seq->holding.shared_blocks(), 31);
  EXPECT_EQ(seq->holding.view().kept, 992);
  while (seq->computed < 1200) memory.compute(*seq, 100);
  EXPECT_EQ(seq->holding.shared_blocks(), 37);
  memory.end(*seq);
  memory.check();
  EXPECT_EQ(memory.memory().cached(), 37);
  EXPECT_EQ(memory.run(joined(joined(first, text(200, 5000)), text(40, 7000))), 1184);
  EXPECT_EQ(memory.run(joined(first, text(40, 8000))), 992);
}

// With fewer slots than a text has places, the last places have them.
TEST(SequenceMemoryStates, FewSlotsGoToTheEnds) {
  for (const int32_t checkpoints : {1, 2, 3}) {
    Memory memory = with_checkpoints(checkpoints);
    EXPECT_EQ(memory.run(text(3000), /*chunk=*/3000), 0);
    EXPECT_LE(memory.memory().checkpoints(), checkpoints);
    EXPECT_EQ(memory.run(joined(text(3000), text(600, 9000)), /*chunk=*/100), 2976);
    memory.check();
  }
}

// A long text does not drive out the end of another.
TEST(SequenceMemoryStates, ThoseOnTheWayGoBeforeEnds) {
  Memory memory = with_checkpoints(4);
  EXPECT_EQ(memory.run(text(300)), 0);
  EXPECT_EQ(memory.run(text(3000, 5000)), 0);
  EXPECT_EQ(memory.run(joined(text(300), text(10, 9000))), 288);
  EXPECT_EQ(memory.run(joined(text(3000, 5000), text(10, 9000))), 2976);
  // Of the ends the least recently used one goes.
  for (int32_t i = 0; i < 3; ++i) memory.run(text(100, 20'000 + 1000 * i));
  EXPECT_LT(memory.run(joined(text(300), text(10, 9500))), 288);
  EXPECT_EQ(memory.run(joined(text(100, 21'000), text(10, 9500))), 96);
  memory.check();
}

// From the match to the first slice, and until the next one is planned.
TEST(SequenceMemoryStates, WhatASequenceGoesOnFromIsNotTaken) {
  Memory memory = with_checkpoints(1);
  EXPECT_EQ(memory.run(text(100)), 0);
  const auto seq = memory.begin(joined(text(100), text(100, 5000)));
  EXPECT_EQ(memory.match(*seq), 96);
  EXPECT_EQ(memory.run(text(2000, 7000)), 0);  // Leaves none.
  memory.check();
  memory.compute(*seq, 50);  // Finds its state.
  EXPECT_EQ(memory.run(text(2000, 8000)), 0);
  memory.compute(*seq, 50);
  memory.end(*seq);
  EXPECT_EQ(memory.run(joined(text(2000, 8000), text(9, 0))), 0) << "it was in use all the time";
  memory.check();
}

// Another one has come further since: what it has left is taken, and less computed.
TEST(SequenceMemoryStates, ASequenceThatCatchesUpTakesWhatOthersLeaveMeanwhile) {
  Memory memory = with_checkpoints(kMany);
  EXPECT_EQ(memory.run(text(2000)), 0);
  checkpoints_of(memory).evict(kMany);
  const auto a = memory.begin(joined(text(2000), text(100, 5000)));
  const auto b = memory.begin(joined(text(2000), text(100, 6000)));
  EXPECT_EQ(memory.match(*a) + memory.match(*b), 0);
  memory.compute(*a, 100);
  memory.compute(*b, 50);
  EXPECT_FALSE(memory.memory().leaves_for(a->holding, 100, 500, b->holding, 50));
  EXPECT_TRUE(memory.memory().leaves_for(a->holding, 100, 600, b->holding, 50));
  EXPECT_FALSE(memory.memory().leaves_for(a->holding, 100, 600, b->holding, 512));
  memory.compute(*a, 500);
  EXPECT_EQ(memory.match(*b), 512 - 50);
  memory.compute(*b, 20);
  memory.compute(*a, 2100 - 600);
  EXPECT_EQ(memory.match(*b), 1984 - 532);
  memory.compute(*b, 100);
  memory.check();
  memory.end(*a);
  memory.end(*b);
}

TEST(SequenceMemoryStates, WhatIsForgottenIsNobodysAndWhatIsInUseStays) {
  Memory memory = with_checkpoints(3);
  EXPECT_EQ(memory.run(text(100)), 0);
  const auto seq = memory.begin(joined(text(100), text(2000, 5000)));
  EXPECT_EQ(memory.match(*seq), 96);
  memory.memory().forget_shared();
  SequenceMemory::stop_sharing(seq->holding);
  memory.check();
  EXPECT_EQ(memory.memory().checkpoints(), 1);
  memory.compute(*seq, 100);
  memory.compute(*seq, 900);
  EXPECT_TRUE(seq->holding.view().marks.empty());
  EXPECT_EQ(memory.memory().checkpoints(), 0);
  memory.end(*seq);
  memory.check();
}

TEST(SequenceMemoryStates, AnEntryTakesItsCheckpointWithIt) {
  Memory memory = with_checkpoints(kMany, /*blocks=*/40);
  EXPECT_EQ(memory.run(text(1200)), 0);
  EXPECT_EQ(memory.memory().checkpoints(), 3);
  EXPECT_EQ(memory.run(text(1200, 5000)), 0);
  memory.check();
  EXPECT_LE(memory.memory().checkpoints(), 3 + 1);
  memory.memory().forget_shared();
  EXPECT_EQ(memory.memory().checkpoints(), 0);
}

// Few blocks, and few checkpoints.
Simulation simulation_of(uint32_t seed) {
  constexpr Simulation::Crowd kCrowd = {.running = 4, .rows = 700, .blocks = 50, .fills = 2};
  constexpr MemoryLoad kLoad = {.running_max = kCrowd.running,
                                .rows_max = kCrowd.running * kCrowd.rows,
                                .loads = kCrowd.fills};
  constexpr std::array<int32_t, 6> kSlots = {1, 2, 3, 5, 8, kMany};
  const int32_t blocks = 60 + static_cast<int32_t>(seed % 5) * 25;
  std::vector<PageGroup> groups = {{0, blocks}};
  if (seed % 3 == 0)
    groups.push_back({100, blocks + static_cast<int32_t>(window_pages_loaded(100, kLoad))});
  // Blocks that others have computed, and which are computed again, have hot pages as well.
  if (seed % 2 == 0)
    groups.push_back({1,
                      static_cast<int32_t>(window_pages_held(1, kLoad)) + kCrowd.running + 2,
                      /*hot=*/true});
  return {seed,
          kCrowd,
          std::move(groups),
          {.running = kCrowd.running, .checkpoints = kSlots[seed % kSlots.size()]}};
}

TEST(SequenceMemoryStates, RandomSequencesFindTheirStates) {
  int64_t matched = 0, filled = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Simulation simulation = simulation_of(seed);
    for (int i = 0; i < 400 && !testing::Test::HasFailure(); ++i) simulation.step();
    simulation.finish();
    if (testing::Test::HasFailure()) return;
    matched += simulation.matched();
    filled += simulation.filled();
  }
  EXPECT_GT(matched, 100'000);
  EXPECT_GT(filled, 10'000);
}

}  // namespace
}  // namespace weir::kv
