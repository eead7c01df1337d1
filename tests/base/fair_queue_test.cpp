#include "base/fair_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace weir {
namespace {

constexpr int32_t kMany = 1000;

// Takes and settles items one by one, each at what its caller's items cost.
std::string order_of(FairQueue<char>& queue, const std::map<char, int64_t>& costs) {
  std::string order;
  while (const auto item = queue.take()) {
    order += *item;
    queue.settle(static_cast<uint64_t>(*item), costs.at(*item));
  }
  return order;
}

void push(FairQueue<char>& queue, const std::string& items) {
  for (const char item : items) queue.push(static_cast<uint64_t>(item), item);
}

TEST(FairQueue, ACallerAloneIsServedInOrder) {
  FairQueue<int> queue(1, 1);
  for (int i = 0; i < 5; ++i) queue.push(7, i);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(queue.take(), i);
    EXPECT_EQ(queue.take(), std::nullopt) << "one at a time";
    queue.settle(7, 100);
  }
  EXPECT_EQ(queue.take(), std::nullopt);
  EXPECT_EQ(queue.waiting(), 0u);
}

TEST(FairQueue, CallersOfEqualCostsTakeTurns) {
  FairQueue<char> queue(1, 1);
  push(queue, "aaaabbcccc");
  EXPECT_EQ(order_of(queue, {{'a', 10}, {'b', 10}, {'c', 10}}), "abcabcacac");
}

TEST(FairQueue, WhoCostsMoreHasFewerTurns) {
  FairQueue<char> queue(1, 1);
  push(queue, "aaaabbbbbbbbbbbb");
  // Four of b's for one of a's.
  EXPECT_EQ(order_of(queue, {{'a', 40}, {'b', 10}}), "abbbbabbbbabbbba");
}

TEST(FairQueue, WhoComesLateBeginsLevelWithTheRest) {
  FairQueue<char> queue(1, 1);
  push(queue, "aaaaaaaaaa");
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(queue.take(), 'a');
    queue.settle('a', 10);
  }
  push(queue, "bbbb");
  const std::string order = order_of(queue, {{'a', 10}, {'b', 10}});
  EXPECT_EQ(order.substr(0, 4).find("bb"), std::string::npos)
      << order << ": b has saved nothing up";
}

TEST(FairQueue, CallersThatAreNewKeepNobodyWaitingForEver) {
  FairQueue<uint64_t> queue(1, 1);
  queue.push(1, 1);
  ASSERT_EQ(queue.take(), 1u);
  queue.push(1, 1);
  queue.settle(1, 100);
  int before = 0;
  for (uint64_t stranger = 1000; stranger < 2000; ++stranger, ++before) {
    queue.push(stranger, stranger);  // Whose like has never been served.
    const auto item = queue.take();
    ASSERT_TRUE(item);
    queue.settle(*item, 10);
    if (*item == 1) break;
  }
  EXPECT_LE(before, 20) << "half of the time is theirs";
}

TEST(FairQueue, OneCallerLeavesThreadsToTheRest) {
  FairQueue<char> queue(5, 4);
  push(queue, "aaaaaaaa");
  for (int i = 0; i < 4; ++i) EXPECT_EQ(queue.take(), 'a');
  EXPECT_EQ(queue.take(), std::nullopt);
  push(queue, "bb");
  EXPECT_EQ(queue.take(), 'b');
  EXPECT_EQ(queue.take(), std::nullopt) << "all five are taken";
  queue.settle('a', 1000);
  EXPECT_EQ(queue.take(), 'b') << "a has cost more";
  EXPECT_EQ(queue.taken(), 5);
}

TEST(FairQueue, WhatIsRemovedIsNotServed) {
  FairQueue<int> queue(1, 1);
  for (int i = 0; i < 3; ++i) queue.push(1, i);
  EXPECT_EQ(queue.youngest(1), 2);
  EXPECT_EQ(queue.youngest(2), std::nullopt);
  EXPECT_TRUE(queue.remove(1, 1));
  EXPECT_FALSE(queue.remove(1, 1));
  EXPECT_FALSE(queue.remove(2, 0));
  EXPECT_EQ(queue.take(), 0);
  EXPECT_FALSE(queue.remove(1, 0)) << "it does not wait any more";
  queue.settle(1, 10);
  EXPECT_EQ(queue.take(), 2);
  queue.settle(1, 10);
  EXPECT_EQ(queue.waiting(), 0u);
  queue.push(1, 9);
  EXPECT_TRUE(queue.remove(1, 9));
  EXPECT_EQ(queue.take(), std::nullopt);
}

TEST(FairQueue, ManyCallersInAnyOrderAreAllServed) {
  FairQueue<int> queue(3, 2);
  uint64_t random = 1;
  const auto next = [&](uint64_t below) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    return (random >> 33) % below;
  };
  int pushed = 0, served = 0;
  std::map<int, uint64_t> caller_of, open;
  for (int round = 0; round < 100 * kMany; ++round) {
    if (round < 50 * kMany && next(2) == 0) {
      const uint64_t caller = next(20) == 0 ? round + 100 : next(7);
      caller_of[pushed] = caller;
      queue.push(caller, pushed++);
    } else if (next(2) == 0) {
      if (const auto item = queue.take()) open[*item] = caller_of[*item];
    } else if (!open.empty()) {
      queue.settle(open.begin()->second, static_cast<int64_t>(next(1000)));
      open.erase(open.begin());
      ++served;
    }
  }
  EXPECT_EQ(queue.waiting(), 0u);
  EXPECT_EQ(served, pushed);
}

}  // namespace
}  // namespace weir
