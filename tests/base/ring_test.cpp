#include "base/ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace weir {
namespace {

TEST(MpscRing, RefusesWhenFullAndKeepsOrder) {
  MpscRing<int> ring(4);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.try_push(int{i}));
  EXPECT_FALSE(ring.try_push(9));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ring.try_pop(), i);
  EXPECT_EQ(ring.try_pop(), std::nullopt);
}

TEST(MpscRing, DeliversEveryItemOfEveryProducerOnceAndInItsOrder) {
  constexpr int kProducers = 4, kItems = 500'000;
  MpscRing<int> ring(256);
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&ring, p] {
      for (int i = 0; i < kItems; ++i)
        while (!ring.try_push(p * kItems + i)) std::this_thread::yield();
    });
  }
  std::vector<int> next(kProducers, 0);
  for (int seen = 0; seen < kProducers * kItems;) {
    const std::optional<int> item = ring.try_pop();
    if (!item) {
      std::this_thread::yield();
      continue;
    }
    const auto producer = static_cast<size_t>(*item / kItems);
    ASSERT_EQ(*item % kItems, next[producer]++);
    ++seen;
  }
  for (std::thread& thread : producers) thread.join();
}

TEST(SpscRing, DeliversMillionsOfItemsInOrder) {
  constexpr int kItems = 2'000'000;
  SpscRing<int> ring(128);
  std::thread producer([&ring] {
    for (int i = 0; i < kItems; ++i)
      while (!ring.try_push(int{i})) std::this_thread::yield();
  });
  for (int i = 0; i < kItems;) {
    if (const std::optional<int> item = ring.try_pop()) {
      ASSERT_EQ(*item, i++);
    } else {
      std::this_thread::yield();
    }
  }
  producer.join();
}

}  // namespace
}  // namespace weir
