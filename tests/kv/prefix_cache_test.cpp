#include "kv/prefix_cache.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace weir::kv {
namespace {

using Tokens = std::vector<int32_t>;

const PrefixKey kSalt = PrefixCache::salt({.cache_salt = 16});

Tokens page_of(int32_t value) { return Tokens(kPageTokens, value); }

// A prompt of pages, each filled with one of `values`.
Tokens prompt(const std::vector<int32_t>& values) {
  Tokens tokens;
  for (const int32_t value : values) tokens.insert(tokens.end(), kPageTokens, value);
  return tokens;
}

// Computes and inserts `tokens`; returns the pages, held by the caller.
std::vector<PageId> add(PagePool& pool, PrefixCache& cache, const Tokens& tokens,
                        PrefixKey key = kSalt) {
  std::vector<PageId> pages(tokens.size() / kPageTokens);
  EXPECT_TRUE(pool.allocate(pages));
  for (size_t i = 0; i < pages.size(); ++i)
    key = cache.insert(key, std::span(tokens).subspan(i * kPageTokens, kPageTokens), pages[i]).key;
  return pages;
}

void release(PagePool& pool, const std::vector<PageId>& pages) {
  for (const PageId page : pages) pool.release(page);
}

// Takes the longest known chain that `tokens` begin with, which counts as used now.
std::vector<PageId> match(PagePool& pool, PrefixCache& cache, const Tokens& tokens,
                          PrefixKey key = kSalt) {
  std::vector<PageId> pages;
  while ((pages.size() + 1) * kPageTokens <= tokens.size()) {
    const PrefixCache::Entry next =
        cache.next(key, pages.empty() ? -1 : pages.back(),
                   std::span(tokens).subspan(pages.size() * kPageTokens, kPageTokens));
    if (next.page < 0) break;
    pool.retain(next.page);
    pages.push_back(next.page);
    key = next.key;
  }
  cache.touch(key);
  return pages;
}

TEST(PrefixCache, LendsTheLongestChainOfFullPages) {
  PagePool pool(16);
  PrefixCache cache({&pool, 1});
  const std::vector<PageId> pages = add(pool, cache, prompt({1, 2, 3}));
  release(pool, pages);
  EXPECT_EQ(pool.free_count(), 13);

  EXPECT_EQ(match(pool, cache, prompt({1, 2, 3, 4})), pages);
  EXPECT_EQ(pool.refs(pages[2]), 2);
  EXPECT_EQ(match(pool, cache, prompt({1, 2, 9})), (std::vector<PageId>{pages[0], pages[1]}));
  EXPECT_EQ(match(pool, cache, prompt({2})), std::vector<PageId>{});
  Tokens partial = prompt({1, 2});
  partial.pop_back();
  EXPECT_EQ(match(pool, cache, partial), std::vector<PageId>{pages[0]});
  EXPECT_EQ(match(pool, cache, {}), std::vector<PageId>{});
  EXPECT_EQ(pool.refs(pages[0]), 4);
  cache.check();
}

TEST(PrefixCache, KeepsSaltsAndParentsApart) {
  PagePool pool(16);
  PrefixCache cache({&pool, 1});
  const std::vector<PageId> pages = add(pool, cache, prompt({1, 2}));
  EXPECT_EQ(match(pool, cache, prompt({1, 2}), PrefixCache::salt({.cache_salt = 16, .format = 1})),
            std::vector<PageId>{});
  EXPECT_EQ(match(pool, cache, prompt({2})), std::vector<PageId>{});
  EXPECT_EQ(match(pool, cache, prompt({2, 2})), std::vector<PageId>{});
  EXPECT_EQ(match(pool, cache, prompt({1, 1})), std::vector<PageId>{pages[0]});
}

TEST(PrefixCache, KeepsWhatIsSeenBesideTokensApart) {
  PagePool pool(16);
  PrefixCache cache({&pool, 1});
  BlockTokens picture = page_of(1), other = picture;
  picture.media = {5, 6};
  other.media = {5, 7};
  std::vector<PageId> pages(2);
  ASSERT_TRUE(pool.allocate(pages));
  const PrefixCache::Entry of_text = cache.insert(kSalt, page_of(1), pages[0]);
  const PrefixCache::Entry of_picture = cache.insert(kSalt, picture, pages[1]);
  EXPECT_NE(of_text.key, of_picture.key);
  EXPECT_EQ(cache.next(kSalt, -1, page_of(1)).page, pages[0]);
  EXPECT_EQ(cache.next(kSalt, -1, picture).page, pages[1]);
  EXPECT_EQ(cache.next(kSalt, -1, other).page, -1);
  cache.check();
}

TEST(PrefixCache, KeepsTheFirstOfTwoPagesThatHoldTheSame) {
  PagePool pool(16);
  PrefixCache cache({&pool, 1});
  const PageId first = add(pool, cache, prompt({1}))[0];
  PageId second = -1;
  ASSERT_TRUE(pool.allocate({&second, 1}));
  const PrefixCache::Entry inserted = cache.insert(kSalt, page_of(1), second);
  EXPECT_EQ(inserted.page, first);
  EXPECT_EQ(pool.refs(second), 1);
  EXPECT_EQ(cache.page_count(), 1);
}

TEST(PrefixCache, DoesNotKeepAPageWhoseParentIsGone) {
  PagePool pool(16);
  PrefixCache cache({&pool, 1});
  PageId page = -1;
  ASSERT_TRUE(pool.allocate({&page, 1}));
  const PrefixKey parent = PrefixCache::child(kSalt, page_of(1));
  EXPECT_EQ(cache.insert(parent, page_of(2), page).page, -1);
  EXPECT_EQ(pool.refs(page), 1);
  cache.check();
}

TEST(PrefixCache, EvictsLeastRecentlyUsedAndChildrenFirst) {
  PagePool pool(16);
  PrefixCache cache({&pool, 1});
  release(pool, add(pool, cache, prompt({1, 2, 3})));
  release(pool, add(pool, cache, prompt({5, 6})));
  release(pool, match(pool, cache, prompt({1})));  // From the oldest: 3 2 6 5 1.
  const auto known = [&](const std::vector<int32_t>& values) {
    const std::vector<PageId> pages = match(pool, cache, prompt(values));
    release(pool, pages);
    return pages.size();
  };
  EXPECT_EQ(cache.evict(1), 1);
  EXPECT_EQ(cache.page_count(), 4);
  EXPECT_EQ(known({1, 2, 3}), 2u);  // From the oldest now: 6 5 2 1.
  EXPECT_EQ(cache.evict(1), 1);
  EXPECT_EQ(known({5, 6}), 1u);
  EXPECT_EQ(known({1, 2}), 2u);
  EXPECT_EQ(cache.evict(9), 3);
  EXPECT_EQ(cache.evict(9), 0);
  EXPECT_EQ(pool.free_count(), 16);
  cache.check();
}

TEST(PrefixCache, EvictsNothingThatASequenceHolds) {
  PagePool pool(16);
  PrefixCache cache({&pool, 1});
  release(pool, add(pool, cache, prompt({1, 2, 3})));
  release(pool, add(pool, cache, prompt({7})));
  const std::vector<PageId> held = match(pool, cache, prompt({1, 2}));
  EXPECT_EQ(cache.evictable_count(), 2);
  EXPECT_EQ(cache.evict(16), 2);
  EXPECT_EQ(match(pool, cache, prompt({1, 2})), held);
  cache.check();
}

// A sequence computed its own copy of the first page; its second page is cached under the other's.
TEST(PrefixCache, KeepsAParentThatOnlyItsChildNeeds) {
  PagePool pool(16);
  PrefixCache cache({&pool, 1});
  release(pool, add(pool, cache, prompt({1})));
  const std::vector<PageId> own = add(pool, cache, prompt({1, 2}));
  EXPECT_EQ(cache.page_count(), 2);
  EXPECT_EQ(cache.evictable_count(), 0);
  EXPECT_EQ(cache.evict(16), 0);
  release(pool, own);
  EXPECT_EQ(cache.evict(16), 2);
  EXPECT_EQ(pool.free_count(), 16);
}

TEST(PrefixCache, CountsAChainAsUsedWhenItIsTouched) {
  PagePool pool(16);
  PrefixCache cache({&pool, 1});
  release(pool, add(pool, cache, prompt({1})));
  release(pool, add(pool, cache, prompt({2})));
  cache.touch(PrefixCache::child(kSalt, page_of(1)));
  EXPECT_EQ(cache.evict(1), 1);
  EXPECT_EQ(match(pool, cache, prompt({1})).size(), 1u);
  EXPECT_EQ(match(pool, cache, prompt({2})).size(), 0u);
}

Clock::time_point at(int64_t s) { return Clock::time_point(std::chrono::seconds(s)); }

TEST(PrefixCache, ForgetsWhatNobodyHasUsedSince) {
  PagePool pool(16);
  PrefixCache cache({&pool, 1});
  cache.set_time(at(10));
  const std::vector<PageId> a = add(pool, cache, prompt({1, 2}));
  cache.set_time(at(20));
  release(pool, add(pool, cache, prompt({5, 6})));
  EXPECT_EQ(cache.unused_due({}), at(10));
  cache.set_time(at(30));
  EXPECT_EQ(cache.evict_unused(at(9), 16), 0);
  EXPECT_EQ(cache.evict_unused(at(10), 16), 0) << "a sequence holds them: they are in use now";
  EXPECT_EQ(cache.unused_due({}), at(20));
  release(pool, a);
  EXPECT_EQ(cache.evict_unused(at(29), 1), 1);
  EXPECT_EQ(match(pool, cache, prompt({5, 6})).size(), 1u) << "children first";
  cache.check();
  cache.set_time(at(40));
  EXPECT_EQ(cache.evict_unused(at(30), 16), 2);
  EXPECT_EQ(cache.page_count(), 1);
  EXPECT_EQ(cache.unused_due({}), at(40)) << "the match holds it";
  cache.check();
}

// It keeps the pages that it is told of, while it has room.
struct Shelf final : PrefixCache::Watcher {
  explicit Shelf(PrefixCache& watched) : cache(watched) { cache.watch(this); }
  ~Shelf() { cache.watch(nullptr); }
  void leaves(PageId) override {
    ++kept;
    --room;
  }
  bool ready() override { return room > 0; }
  PrefixCache& cache;
  int32_t room = 0, kept = 0;
};

TEST(PrefixCache, WhatIsUnusedWaitsForTheWatcher) {
  PagePool pool(16);
  PrefixCache cache({&pool, 1});
  Shelf shelf(cache);
  cache.set_time(at(10));
  release(pool, add(pool, cache, prompt({1, 2, 3})));
  PrefixKey key = kSalt;
  for (const int32_t value : {1, 2, 3}) key = PrefixCache::child(key, page_of(value));
  cache.take(key);  // Another sequence: they are worth keeping.
  cache.set_time(at(30));
  EXPECT_EQ(cache.unused_due(std::chrono::seconds(5)), Clock::time_point::max());
  EXPECT_EQ(cache.evict_unused(at(20), 16), 0);
  shelf.room = 2;
  EXPECT_EQ(cache.unused_due(std::chrono::seconds(5)), at(15));
  EXPECT_EQ(cache.evict_unused(at(20), 16), 2);
  EXPECT_EQ(shelf.kept, 2);
  cache.check();
  EXPECT_EQ(cache.evict(16), 1) << "where pages are needed nothing waits";
  cache.check();
}

// Pages of a long answer are added when their parents were used, and count from its end.
TEST(PrefixCache, AnAnswersPagesAreAsOldAsItsEnd) {
  PagePool pool(16);
  PrefixCache cache({&pool, 1});
  std::vector<PageId> pages(3);
  ASSERT_TRUE(pool.allocate(pages));
  PrefixKey key = kSalt;
  for (int32_t i = 0; i < 3; ++i) {
    cache.set_time(at(100 * (i + 1)));
    key = cache.insert(key, page_of(i), pages[static_cast<size_t>(i)]).key;
    EXPECT_EQ(cache.unused_due({}), at(100));
    cache.check();
  }
  cache.touch(key);
  release(pool, pages);
  EXPECT_EQ(cache.unused_due({}), at(300));
}

TEST(PrefixCache, GivesAllPagesBackAtItsEnd) {
  PagePool pool(16);
  {
    PrefixCache cache({&pool, 1});
    release(pool, add(pool, cache, prompt({1, 2, 3})));
  }
  EXPECT_EQ(pool.free_count(), 16);
}

// Sequences over a small alphabet come, grow, and go in a pool that is too small. What a page holds
// is written down beside the pool, and every page lent must hold what its prompt says.
class Simulation {
 public:
  explicit Simulation(uint32_t seed) : random_(seed) {}

  void step() {
    ++time_;
    cache_.set_time(at(time_));
    pool_.set_time(at(time_));
    switch (random_() % 9) {
      case 8:
        if (const int64_t since = time_ - static_cast<int64_t>(random_() % 200); since < time_)
          cache_.evict_unused(at(since), static_cast<int32_t>(random_() % 4));
        break;
      case 0:
      case 1:
        arrive();
        break;
      case 2:
        leave();
        break;
      case 3:
        cache_.evict(static_cast<int32_t>(random_() % 4));
        break;
      case 4:
        if (random_() % 64 == 0) cache_.clear();
        break;
      default:
        grow();
    }
    cache_.check();
    pool_.check();
  }

  int64_t lent() const { return lent_; }

  void end() {
    while (!running_.empty()) leave();
    EXPECT_EQ(cache_.evictable_count(), cache_.page_count());
    cache_.evict(kPages);
    EXPECT_EQ(pool_.free_count(), kPages);
  }

 private:
  static constexpr int32_t kPages = 61;
  struct Sequence {
    Tokens tokens;
    std::vector<PageId> pages;
    PrefixKey key;
  };

  void arrive() {
    Sequence sequence;
    const size_t length = random_() % 6;
    for (size_t i = 0; i < length; ++i)
      sequence.tokens.insert(sequence.tokens.end(), kPageTokens, static_cast<int>(random_() % 3));
    sequence.pages = match(pool_, cache_, sequence.tokens);
    sequence.key = kSalt;
    for (size_t i = 0; i < sequence.pages.size(); ++i)
      sequence.key = PrefixCache::child(
          sequence.key, std::span(sequence.tokens).subspan(i * kPageTokens, kPageTokens));
    for (size_t i = 0; i < sequence.pages.size(); ++i) {
      const Tokens head(sequence.tokens.begin(),
                        sequence.tokens.begin() + static_cast<int64_t>((i + 1) * kPageTokens));
      ASSERT_EQ(contents_[sequence.pages[i]], head);
    }
    lent_ += std::ssize(sequence.pages);
    sequence.tokens.resize(sequence.pages.size() * kPageTokens);
    running_.push_back(std::move(sequence));
  }

  void grow() {
    if (running_.empty()) return;
    Sequence& sequence = running_[random_() % running_.size()];
    PageId page = -1;
    const PageId last = sequence.pages.empty() ? -1 : sequence.pages.back();
    if (!pool_.allocate({&page, 1}, last)) {
      const int32_t evictable = cache_.evictable_count();
      EXPECT_EQ(cache_.evict(1), std::min(evictable, 1));
      if (!pool_.allocate({&page, 1}, last)) return;
    }
    sequence.tokens.insert(sequence.tokens.end(), kPageTokens, static_cast<int>(random_() % 3));
    sequence.pages.push_back(page);
    contents_[page] = sequence.tokens;
    const PrefixCache::Entry inserted =
        cache_.insert(sequence.key, std::span(sequence.tokens).last(kPageTokens), page);
    sequence.key = inserted.key;
    if (inserted.page >= 0 && inserted.page != page && random_() % 2 == 0) {
      ASSERT_EQ(contents_[inserted.page], sequence.tokens);
      pool_.retain(inserted.page);
      pool_.release(page);
      sequence.pages.back() = inserted.page;
    }
  }

  void leave() {
    if (running_.empty()) return;
    const size_t i = random_() % running_.size();
    cache_.touch(running_[i].key);
    release(pool_, running_[i].pages);
    running_[i] = std::move(running_.back());
    running_.pop_back();
  }

  std::mt19937 random_;
  PagePool pool_{kPages};
  PrefixCache cache_{{&pool_, 1}};
  std::vector<Sequence> running_;
  std::map<PageId, Tokens> contents_;
  int64_t lent_ = 0;
  int64_t time_ = 0;
};

TEST(PrefixCache, SurvivesRandomSequencesInAPoolTooSmall) {
  int64_t lent = 0;
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Simulation simulation(seed);
    for (int i = 0; i < 1500 && !testing::Test::HasFatalFailure(); ++i) simulation.step();
    simulation.end();
    lent += simulation.lent();
  }
  EXPECT_GT(lent, 1000);
}

}  // namespace
}  // namespace weir::kv
