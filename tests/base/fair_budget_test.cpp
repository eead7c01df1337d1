#include "base/fair_budget.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace weir {
namespace {

TEST(FairBudget, OneThatIsAloneGetsHalfBitByBit) {
  FairBudget budget(1000);
  EXPECT_TRUE(budget.take(1, 1));
  EXPECT_FALSE(budget.take(1, 500));
  EXPECT_TRUE(budget.take(1, 499));
  EXPECT_FALSE(budget.take(1, 1));
  budget.give_back(1, 500);
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_EQ(budget.held_by(1), 0u);
}

TEST(FairBudget, AFactorGivesMoreToOneAndLessToTheNext) {
  FairBudget budget(1000, 4);
  EXPECT_TRUE(budget.take(1, 1));
  while (budget.take(1, 1)) continue;
  EXPECT_EQ(budget.held_by(1), 800u);
  while (budget.take(2, 1)) continue;
  EXPECT_EQ(budget.held_by(2), 160u);
}

TEST(FairBudget, OneLargePieceLeavesRoomForSmallOnes) {
  FairBudget budget(800);
  EXPECT_EQ(FairBudget::most_of_one(800), 700u);
  EXPECT_FALSE(budget.take(1, 701));
  EXPECT_TRUE(budget.take(1, 700));
  EXPECT_FALSE(budget.take(1, 1));
  EXPECT_FALSE(budget.take(2, 51));
  EXPECT_TRUE(budget.take(2, 50));
  EXPECT_TRUE(budget.take_more(1, 50));
  EXPECT_FALSE(budget.take_more(1, 1));
  for (size_t size = 0; size < 100; ++size)
    EXPECT_GE(FairBudget::most_of_one(FairBudget::size_for(size)), size);
}

TEST(FairBudget, AShareIsLeftForTheNextOne) {
  FairBudget budget(4300);
  for (int round = 0; round < 4300; ++round)
    for (uint64_t greedy = 1; greedy <= 42; ++greedy) budget.take(greedy, 1);
  for (uint64_t greedy = 1; greedy <= 42; ++greedy) {
    EXPECT_EQ(budget.room(greedy), 0u);
    EXPECT_NEAR(static_cast<double>(budget.held_by(greedy)), 100, 1);
  }
  EXPECT_GE(budget.room(43), 50u);
  EXPECT_TRUE(budget.take(43, 50));
}

TEST(FairBudget, CountsWhatIsHeldWhateverTheOrder) {
  std::mt19937 random(7);
  FairBudget budget(1 << 16);
  std::map<uint64_t, size_t> held;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t holder = random() % 5;
    const size_t bytes = random() % 4096;
    if (random() % 2 == 0) {
      size_t used = 0;
      for (const auto& [other, amount] : held) used += amount;
      const bool fits = held[holder] == 0 && bytes + used <= (1 << 16) / 8 * 7
                            ? true
                            : held[holder] + bytes + used + bytes <= (1 << 16);
      ASSERT_EQ(budget.take(holder, bytes), fits);
      if (fits) held[holder] += bytes;
    } else {
      const size_t back = std::min(bytes, held[holder]);
      budget.give_back(holder, back);
      held[holder] -= back;
    }
    ASSERT_EQ(budget.held_by(holder), held[holder]);
  }
}

}  // namespace
}  // namespace weir
