// What callers are due, and what is remembered of it.
#include "sched/shares.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir::sched {
namespace {

void compute(Shares& shares, Share& share, int32_t rows) {
  shares.charge(share, rows);
  shares.end_step(rows);
}

TEST(Shares, ACallerBeginsWithCreditAndUsesItUpWhileItIsAlone) {
  Shares shares(4);
  Share* const alone = shares.enter(7);
  EXPECT_FALSE(shares.several());
  EXPECT_EQ(shares.credit(*alone), Shares::kCredit);
  shares.charge_alone(*alone, 500);
  EXPECT_EQ(shares.credit(*alone), Shares::kCredit - 250);
  for (int i = 0; i < 100; ++i) shares.charge_alone(*alone, 500);
  EXPECT_EQ(shares.credit(*alone), 0);
  EXPECT_TRUE(shares.in_debt(*alone));
}

TEST(Shares, CallersThatAreAloneInTurnHaveCreditForEachOther) {
  Shares shares(4);
  for (int turn = 0; turn < 100; ++turn) {
    Share* const share = shares.enter(static_cast<uint64_t>(turn % 2));
    EXPECT_GE(shares.credit(*share), Shares::kCredit - 500);
    shares.charge_alone(*share, 500);
    shares.leave(*share);
  }
}

TEST(Shares, ACallerThatHasMoreThanItsPartIsInDebtUntilOthersHaveHadAsMuch) {
  Shares shares(4);
  Share* const greedy = shares.enter(1);
  Share* const modest = shares.enter(2);
  for (int i = 0; i < 20; ++i) compute(shares, *greedy, 500);
  EXPECT_TRUE(shares.in_debt(*greedy));
  EXPECT_EQ(shares.credit(*greedy), -Shares::kCredit);
  EXPECT_EQ(shares.credit(*modest), Shares::kCredit);
  for (int i = 0; i < 10; ++i) compute(shares, *modest, 500);
  EXPECT_FALSE(shares.in_debt(*greedy));
}

TEST(Shares, RankCallersByQuartersOfTheirCredit) {
  Shares shares(4);
  Share* const busy = shares.enter(1);
  Share* const calm = shares.enter(2);
  std::vector<int32_t> ranks;
  for (int i = 0; i < 10; ++i) {
    ranks.push_back(shares.rank(*busy));
    compute(shares, *busy, static_cast<int32_t>(Shares::kCredit / 4));
  }
  EXPECT_EQ(ranks, (std::vector<int32_t>{4, 4, 4, 3, 3, 2, 2, 1, 0, 0}));
  EXPECT_EQ(shares.rank(*calm), 4);
}

TEST(Shares, ACallerThatHasEndedEverythingIsRemembered) {
  Shares shares(4);
  shares.enter(2);
  Share* greedy = shares.enter(1);
  for (int i = 0; i < 20; ++i) compute(shares, *greedy, 500);
  shares.leave(*greedy);
  EXPECT_EQ(shares.callers(), 1);
  greedy = shares.enter(1);
  EXPECT_EQ(shares.callers(), 2);
  EXPECT_TRUE(shares.in_debt(*greedy));
}

TEST(Shares, OfManyCallersThoseInDebtAreRememberedLongest) {
  Shares shares(2);
  shares.enter(1);
  Share* const greedy = shares.enter(2);
  for (int i = 0; i < 20; ++i) compute(shares, *greedy, 500);
  shares.leave(*greedy);
  for (uint64_t caller = 100; caller < 1100; ++caller) shares.leave(*shares.enter(caller));
  EXPECT_TRUE(shares.in_debt(*shares.enter(2)));
}

TEST(Shares, WithOneSequenceOfACallerItIsOpenUntilTheLastOneEnds) {
  Shares shares(4);
  Share* const share = shares.enter(1);
  EXPECT_EQ(shares.enter(1), share);
  shares.leave(*share);
  EXPECT_EQ(shares.callers(), 1);
  shares.leave(*share);
  EXPECT_EQ(shares.callers(), 0);
}

}  // namespace
}  // namespace weir::sched
