// SequenceMemory with pages alone; those with states are in sequence_states_test.cpp.
#include "kv/sequence_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
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

TEST(SequenceMemory, RollbackGivesBackWhatLiesAfter) {
  Memory memory({{0, 64}, {64, 64}});
  const auto seq = memory.begin(text_of(numbers(0, 10)));
  memory.compute(*seq, 100);
  memory.compute(*seq, 150, /*shared=*/100);
  EXPECT_EQ(memory.memory().held(), 8);
  memory.rollback(*seq, 101);
  EXPECT_EQ(memory.memory().held(), 4);
  EXPECT_EQ(memory.memory().held_pages(1), 4 - first_block_seen(96, 64));
  for (size_t i = 101; i < seq->text.tokens.size(); ++i) seq->text.tokens[i] = 7;
  memory.compute(*seq, 100);
  memory.check();
  memory.end(*seq);
  EXPECT_EQ(memory.run(text_of({0, 1, 2}, 1)), 96);
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

// Sequences come, compute, take back, give way and end in pools as small as the bound lets them be.
class Simulation {
 public:
  explicit Simulation(uint32_t seed)
      : random_(seed), memory_(groups(seed), /*cache=*/seed % 7 != 0) {}

  void step() {
    const size_t i = open_.empty() ? 0 : random_() % open_.size();
    switch (open_.empty() ? 0 : random_() % 10) {
      case 0:
        arrive();
        break;
      case 1:
        if (random_() % 40 == 0) {
          memory_.memory().forget_shared();
          for (const auto& seq : open_) SequenceMemory::stop_sharing(seq->holding);
        }
        break;
      case 2:
        end(i);
        break;
      case 3:
        roll_back(*open_[i]);
        break;
      default:
        compute(*open_[i]);
    }
    memory_.check();
  }
  void finish() {
    while (!open_.empty()) end(0);
    memory_.check();
    memory_.memory().forget_shared();
    for (const PagePool& pool : memory_.memory().pools())
      EXPECT_EQ(pool.free_count(), pool.page_count());
  }
  int64_t matched() const { return matched_; }

 private:
  static constexpr int32_t kRunning = 5, kRows = 90;
  static constexpr MemoryLoad kLoad = {.running_max = kRunning, .rows_max = kRunning * kRows};

  static std::vector<PageGroup> groups(uint32_t seed) {
    const int32_t blocks = 20 + static_cast<int32_t>(seed % 5) * 11;
    std::vector<PageGroup> groups = {{0, blocks}};
    for (const int32_t window : seed % 2 == 0 ? std::vector{100, 33} : std::vector{64})
      groups.push_back({window, static_cast<int32_t>(
                                    std::min<int64_t>(blocks, window_pages_held(window, kLoad)))});
    return groups;
  }

  void arrive() {
    if (open_.size() == kRunning) return;
    std::vector<int32_t> blocks(1 + random_() % 11);
    const size_t same = random_() % 12;
    for (size_t b = 0; b < blocks.size(); ++b)
      blocks[b] = b < same ? 0 : static_cast<int32_t>(random_() % 2);
    open_.push_back(memory_.begin(text_of(blocks, 1 + static_cast<int32_t>(random_() % 31))));
    matched_ += memory_.match(*open_.back());
  }
  void compute(Sequence& seq) {
    if (random_() % 3 == 0 && seq.computed == seq.holding.shared_blocks() * kPageTokens)
      matched_ += memory_.match(seq);
    const int32_t left = Memory::length(seq) - seq.computed;
    const int32_t count = std::min(left, 1 + static_cast<int32_t>(random_() % kRows));
    const int32_t missing = blocks_for(seq.computed + count) - seq.holding.blocks();
    if (count == 0 || missing > memory_.memory().available()) return;
    // As a plan does: what any window has left goes first.
    for (const auto& other : open_) memory_.memory().leave(other->holding, other->computed);
    const bool draft = random_() % 4 == 0;
    memory_.compute(seq, count, draft ? seq.computed : 1 << 30);
  }
  void roll_back(Sequence& seq) {
    const int32_t least = std::max(seq.holding.shared_blocks() * kPageTokens,
                                   seq.computed / kPageTokens * kPageTokens);
    if (seq.computed <= least) return;
    memory_.rollback(
        seq, least + static_cast<int32_t>(random_() % static_cast<uint32_t>(seq.computed - least)));
  }
  void end(size_t i) {
    memory_.end(*open_[i]);
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(i));
  }

  std::mt19937 random_;
  Memory memory_;
  std::vector<std::unique_ptr<Sequence>> open_;
  int64_t matched_ = 0;
};

TEST(SequenceMemory, RandomSequencesFindWhatIsTheirs) {
  int64_t matched = 0;
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Simulation simulation(seed);
    for (int i = 0; i < 600 && !testing::Test::HasFailure(); ++i) simulation.step();
    simulation.finish();
    if (testing::Test::HasFailure()) return;
    matched += simulation.matched();
  }
  EXPECT_GT(matched, 10'000);
}

}  // namespace
}  // namespace weir::kv
