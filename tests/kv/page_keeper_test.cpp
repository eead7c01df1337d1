#include "kv/page_keeper.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "kv/sequence_memory.h"
#include "kv/sequence_memory_world.h"

namespace weir::kv {
namespace {

using namespace std::chrono_literals;

constexpr int32_t kPages = 96;
// A page of a layer is one or two system pages, and one that is none.
const std::vector<MemoryNeed> kNeeds = {PagedNeed{1, 32, 32}, PagedNeed{2, 32, 32},
                                        PagedNeed{1, 8, 8}};

Clock::time_point at(int64_t s) { return Clock::time_point(std::chrono::seconds(s)); }

class Kept {
 public:
  explicit Kept(const PageKeeper::Times& times)
      : memory_(std::move(*KvCache::create(kNeeds, kernels::FloatType::kF16, kPages))),
        keeper_(times, {&pool_, 1}, &cache_, memory_) {}

  // A prompt of pages, each of one value, computed and cached, then ended.
  void run(const std::vector<int32_t>& values) {
    std::vector<PageId> pages(values.size());
    ASSERT_TRUE(pool_.allocate(pages));
    PrefixKey key = PrefixCache::salt({});
    for (size_t i = 0; i < values.size(); ++i) {
      write(pages[i], values[i]);
      key = cache_.insert(key, std::vector<int32_t>(kPageTokens, values[i]), pages[i]).key;
    }
    cache_.touch(key);
    for (const PageId page : pages) pool_.release(page);
  }
  // Pages of the prompt that are known, and hold what was written.
  int32_t known(const std::vector<int32_t>& values) {
    PrefixCache::Entry last = {.key = PrefixCache::salt({})};
    int32_t count = 0;
    for (const int32_t value : values) {
      const std::vector<int32_t> tokens(kPageTokens, value);
      const PrefixCache::Entry next = cache_.next(last.key, last.page, tokens);
      if (next.page < 0) break;
      EXPECT_TRUE(holds(next.page, value));
      last = next;
      ++count;
    }
    cache_.touch(last.key);
    return count;
  }
  void write(PageId page, int32_t value) {
    for (int32_t l = 0; l < memory_.layer_count(); ++l)
      std::memset(memory_.layer(l).base + page * memory_.layer(l).page_bytes, value,
                  static_cast<size_t>(memory_.layer(l).page_bytes));
  }
  bool holds(PageId page, int32_t value) const {
    for (int32_t l = 0; l < memory_.layer_count(); ++l) {
      const uint8_t* bytes = memory_.layer(l).base + page * memory_.layer(l).page_bytes;
      for (int64_t i = 0; i < memory_.layer(l).page_bytes; ++i)
        if (bytes[i] != value) return false;
    }
    return true;
  }
  // As an engine does that has nothing to compute, until nothing is due.
  void idle_until(Clock::time_point now) {
    keeper_.set_time(now);
    for (int pieces = 0; keeper_.due() <= now; ++pieces) {
      keeper_.give_back();
      ASSERT_LT(pieces, 1000) << "what is due goes";
    }
    pool_.check();
    cache_.check();
  }

  PagePool& pool() { return pool_; }
  PageKeeper& keeper() { return keeper_; }

 private:
  PagePool pool_{kPages};
  PrefixCache cache_{{&pool_, 1}};
  KvCache memory_;
  PageKeeper keeper_;
};

TEST(PageKeeper, FreePagesKeepTheirMemoryForAWhileAndCachedOnesForALongerOne) {
  Kept kept({.free = 60s, .cached = 600s});
  kept.idle_until(at(1));
  EXPECT_EQ(kept.keeper().due(), Clock::time_point::max());
  kept.run({1, 2, 3});
  PageId page = -1;
  ASSERT_TRUE(kept.pool().allocate({&page, 1}));
  kept.write(page, 9);
  kept.pool().release(page);
  EXPECT_EQ(kept.pool().warm_count(), 4);
  kept.idle_until(at(60));
  EXPECT_EQ(kept.pool().warm_count(), 4);
  EXPECT_TRUE(kept.holds(page, 9));
  kept.idle_until(at(76));
  EXPECT_EQ(kept.pool().warm_count(), 3);
  EXPECT_FALSE(kept.holds(page, 9)) << "it holds zeros, where it filled whole pages";
  EXPECT_EQ(kept.keeper().due(), at(601)) << "it may sleep until then";
  EXPECT_EQ(kept.known({1, 2, 3}), 3);
  kept.idle_until(at(601));
  EXPECT_EQ(kept.pool().warm_count(), 3) << "it was used in between";
  kept.idle_until(at(676));
  EXPECT_EQ(kept.pool().warm_count(), 0);
  EXPECT_EQ(kept.known({1, 2, 3}), 0);
  EXPECT_EQ(kept.keeper().due(), Clock::time_point::max());
  EXPECT_EQ(kept.keeper().taken_bytes(), 0);
}

TEST(PageKeeper, ShedsAllThatIsFreeAndTheOldestQuarterOfTheCache) {
  Kept kept({.free = 60s, .cached = 600s});
  for (int32_t i = 0; i < 4; ++i) {
    kept.idle_until(at(i + 1));
    kept.run({10 * i, 10 * i + 1});
  }
  std::vector<PageId> pages(8);
  ASSERT_TRUE(kept.pool().allocate(pages));
  for (const PageId page : pages) kept.pool().release(page);
  kept.idle_until(at(5));
  EXPECT_EQ(kept.pool().warm_count(), 16);
  kept.keeper().shed();
  kept.idle_until(at(5));
  EXPECT_EQ(kept.pool().warm_count(), 6);
  EXPECT_EQ(kept.known({0, 1}), 0);
  for (int32_t i = 1; i < 4; ++i) EXPECT_EQ(kept.known({10 * i, 10 * i + 1}), 2);
}

TEST(PageKeeper, KeepsCachedPagesForEverWithoutATime) {
  Kept kept({.free = 1s, .cached = 0s});
  kept.idle_until(at(1));
  kept.run({1, 2});
  kept.idle_until(at(1'000'000));
  EXPECT_EQ(kept.known({1, 2}), 2);
}

// By the rule of the pages that they belong to, and by a quarter when memory is short.
TEST(PageKeeper, CheckpointsGoWithTheirEntries) {
  const std::vector<MemoryNeed> needs = {PagedNeed{1, 32, 32}, StateNeed{1 << 20}};
  KvCache cache =
      *KvCache::create(needs, kernels::FloatType::kF16, 96, {.running = 1, .checkpoints = 8});
  SequenceMemory memory(cache.groups(), /*prefix_cache=*/true, cache.state_slots());
  PageKeeper keeper({.free = 60s, .cached = 600s}, memory.pools(), memory.cache(), cache);
  Text text;
  Holding holding;
  holding.reserve(1, 96);
  const auto idle_until = [&](int64_t s) {
    keeper.set_time(at(s));
    while (keeper.due() <= at(s)) keeper.give_back();
    memory.check({});
  };
  const auto run = [&](int32_t tokens, int32_t value) {
    text.tokens.assign(static_cast<size_t>(tokens), value);
    memory.begin(holding, PrefixCache::salt({}), tokens);
    memory.grow(holding, tokens);
    memory.plan(holding, text, 0, tokens);
    for (const StateMark& mark : holding.view().marks)
      std::memset(cache.state(1, mark.slot), value, 1 << 20);
    memory.share(holding, text, tokens);
    memory.release(holding);
  };
  idle_until(1);
  run(1100, 1);
  run(1100, 2);
  EXPECT_EQ(memory.checkpoints(), 6);
  const int64_t taken = keeper.taken_bytes();
  EXPECT_GT(taken, 6 << 20);
  idle_until(300);
  EXPECT_EQ(memory.checkpoints(), 6);
  keeper.shed();
  EXPECT_EQ(memory.checkpoints(), 4) << "a quarter of them, and those of the entries that go";
  idle_until(300);
  EXPECT_LT(keeper.taken_bytes(), taken - (2 << 20));
  idle_until(700);
  EXPECT_EQ(memory.checkpoints(), 0);
  EXPECT_EQ(keeper.taken_bytes(), 0);
  for (int32_t slot = 1; slot < 9; ++slot) EXPECT_EQ(*(cache.state(1, slot) + (1 << 19)), 0);
}

// Sequences hold pages of a value of their own, while memory goes back again and again.
TEST(PageKeeper, NeverTakesMemoryThatSomebodyUses) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    Kept kept({.free = 3s, .cached = 10s});
    std::vector<std::pair<PageId, int32_t>> held;
    for (int32_t step = 1; step < 600; ++step) {
      kept.keeper().set_time(at(step));
      switch (random() % 4) {
        case 0: {
          std::vector<PageId> pages(random() % 12);
          if (!kept.pool().allocate(pages)) break;
          for (const PageId page : pages) {
            held.emplace_back(page, 1 + static_cast<int32_t>(random() % 250));
            kept.write(page, held.back().second);
          }
          break;
        }
        case 1:
          for (size_t n = random() % 12; n > 0 && !held.empty(); --n) {
            std::swap(held[random() % held.size()], held.back());
            ASSERT_TRUE(kept.holds(held.back().first, held.back().second));
            kept.pool().release(held.back().first);
            held.pop_back();
          }
          break;
        case 2:
          if (kept.pool().free_count() >= 5)
            kept.run({static_cast<int32_t>(random() % 5), 7, 8, static_cast<int32_t>(step % 250)});
          break;
        default:
          if (random() % 10 == 0) kept.keeper().shed();
      }
      kept.keeper().give_back();
      kept.pool().check();
      kept.known({static_cast<int32_t>(random() % 5), 7, 8});
    }
    for (const auto& [page, value] : held) {
      ASSERT_TRUE(kept.holds(page, value));
      kept.pool().release(page);
    }
    kept.idle_until(at(1000));
    EXPECT_EQ(kept.pool().warm_count(), 0);
  }
}

}  // namespace
}  // namespace weir::kv
