// SequenceMemory against a plain model: what is written down beside every page, and what each
// sequence would find at each position that it sees.
#include "kv/sequence_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace weir::kv {
namespace {

constexpr int32_t kBlocksMax = 40;

struct Text final : TokenKeys {
  std::vector<int32_t> tokens;
  void read(int32_t block, BlockTokens& into) const override {
    for (int32_t i = 0; i < kPageTokens; ++i)
      into[static_cast<size_t>(i)] = tokens[static_cast<size_t>(block * kPageTokens + i)];
  }
};

struct Sequence {
  Text text;
  Holding holding;
  int32_t computed = 0;
};

uint64_t chain(uint64_t hash, int32_t token) {
  return (hash ^ static_cast<uint64_t>(token + 1)) * 0x9e3779b97f4a7c15u + (hash >> 29);
}

// Sequences, and what lies in the pages.
class Memory {
 public:
  explicit Memory(std::vector<PageGroup> groups, bool cache = true)
      : groups_(std::move(groups)), memory_(groups_, cache) {
    for (const PageGroup& group : groups_)
      content_.emplace_back(static_cast<size_t>(group.pages) * kPageTokens);
  }

  std::unique_ptr<Sequence> begin(std::vector<int32_t> tokens) {
    auto seq = std::make_unique<Sequence>();
    seq->text.tokens = std::move(tokens);
    seq->holding.reserve(static_cast<int32_t>(groups_.size()), kBlocksMax);
    memory_.begin(seq->holding, PrefixCache::salt({}));
    open_.push_back(&seq->holding);
    return seq;
  }
  // Returns how many tokens were known.
  int32_t match(Sequence& seq) {
    const int32_t tokens = memory_.match(seq.holding, seq.text, length(seq) - 1);
    seq.computed += tokens;
    expect_seen(seq);
    return tokens;
  }
  // `shared`: how many of all tokens are known for sure.
  void compute(Sequence& seq, int32_t count, int32_t shared = 1 << 30) {
    memory_.leave(seq.holding, seq.computed);
    memory_.grow(seq.holding, seq.computed + count);
    expect_seen(seq);
    uint64_t hash = 0;
    for (int32_t i = 0; i < seq.computed + count; ++i) {
      hash = chain(hash, seq.text.tokens[static_cast<size_t>(i)]);
      for (size_t g = 0; g < groups_.size() && i >= seq.computed; ++g) at(seq, g, i) = hash;
    }
    seq.computed += count;
    memory_.share(seq.holding, seq.text, std::min(seq.computed, shared));
  }
  void rollback(Sequence& seq, int32_t tokens) {
    memory_.rollback(seq.holding, tokens);
    seq.computed = tokens;
    expect_seen(seq);
  }
  void end(Sequence& seq) {
    memory_.release(seq.holding);
    std::erase(open_, &seq.holding);
    seq.computed = 0;
  }
  // A prompt that is computed and ends. Returns how much of it was known.
  int32_t run(const std::vector<int32_t>& tokens, int32_t chunk = 64) {
    const auto seq = begin(tokens);
    const int32_t known = match(*seq);
    while (seq->computed < length(*seq))
      compute(*seq, std::min(chunk, length(*seq) - seq->computed));
    end(*seq);
    return known;
  }
  void check() const {
    memory_.check(open_);
    for (size_t g = 1; g < groups_.size(); ++g)
      EXPECT_LE(memory_.held_pages(static_cast<int32_t>(g)), memory_.held());
  }
  // All that the next position sees is what this sequence's tokens say.
  void expect_seen(Sequence& seq) {
    uint64_t hash = 0;
    for (int32_t i = 0; i < seq.computed; ++i) {
      hash = chain(hash, seq.text.tokens[static_cast<size_t>(i)]);
      for (size_t g = 0; g < groups_.size(); ++g) {
        if (groups_[g].window > 0 && i <= seq.computed - groups_[g].window) continue;
        ASSERT_EQ(at(seq, g, i), hash) << "position " << i << " group " << g;
      }
    }
  }

  static int32_t length(const Sequence& seq) {
    return static_cast<int32_t>(seq.text.tokens.size());
  }
  SequenceMemory& memory() { return memory_; }

 private:
  uint64_t& at(const Sequence& seq, size_t group, int32_t position) {
    const int32_t page =
        seq.holding.view().pages(static_cast<int32_t>(group))[position / kPageTokens];
    return content_[group][static_cast<size_t>(page * kPageTokens + position % kPageTokens)];
  }

  const std::vector<PageGroup> groups_;
  SequenceMemory memory_;
  std::vector<std::vector<uint64_t>> content_;
  std::vector<const Holding*> open_;
};

// Blocks of one value each.
std::vector<int32_t> text_of(const std::vector<int32_t>& blocks, int32_t more = 0) {
  std::vector<int32_t> tokens;
  for (const int32_t value : blocks) tokens.insert(tokens.end(), kPageTokens, value);
  tokens.insert(tokens.end(), static_cast<size_t>(more), 99);
  return tokens;
}

std::vector<int32_t> numbers(int32_t first, int32_t count) {
  std::vector<int32_t> values;
  for (int32_t i = 0; i < count; ++i) values.push_back(first + i);
  return values;
}

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

// A slot from begin() to release(), and nothing shared: nobody has the state that belongs to the
// end of a shared block.
TEST(SequenceMemoryStates, EachSequenceHasASlotOfItsOwnAndSharesNothing) {
  const std::vector<PageGroup> groups = {{.pages = 40}};
  SequenceMemory memory(groups, /*prefix_cache=*/true, /*state_slots=*/2);
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
    EXPECT_EQ(memory.match(holding, text, 99), 0);
    memory.grow(holding, 100);
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

}  // namespace
}  // namespace weir::kv
