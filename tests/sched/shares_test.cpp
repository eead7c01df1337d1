// What callers are due, and what prompts of those that have had more may take.
#include "sched/shares.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace weir::sched {
namespace {

constexpr int32_t kUnbounded = std::numeric_limits<int32_t>::max();

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

TEST(Shares, WhoHasEndedEverythingIsRemembered) {
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

struct Steps : testing::Test {
  void SetUp() override {
    for (int i = 0; i < 20; ++i) compute(shares, *greedy, 500);
    begin(512);
  }
  void begin(int32_t prompt_tokens) {
    for (Share* share : {modest, greedy, third}) Shares::begin(*share);
    shares.begin_step(prompt_tokens);
  }

  Shares shares{4};
  Share* const modest = shares.enter(2);
  Share* const greedy = shares.enter(1);
  Share* const third = shares.enter(3);
};

TEST_F(Steps, WithoutOthersInThemHaveNoBounds) {
  shares.add_decodes(*greedy, 5);
  EXPECT_EQ(shares.decode_rows_max(*greedy), kUnbounded);
  EXPECT_EQ(shares.prompt_tokens_max(*greedy, 0), kUnbounded);
}

TEST_F(Steps, HaveTheirBoundsForAWhileAfterTheOthersHaveEnded) {
  shares.note_bound();
  compute(shares, *greedy, 16);
  shares.leave(*modest);
  shares.leave(*third);
  for (int i = 0; i < Shares::kLinger; ++i) {
    ASSERT_TRUE(shares.several());
    begin(512);
    shares.add_decodes(*greedy, 100);
    EXPECT_EQ(shares.decode_rows_max(*greedy), 16);
    shares.note_bound();
    compute(shares, *greedy, 16);
  }
  EXPECT_FALSE(shares.several());
}

TEST_F(Steps, HaveAsManyRowsOfOneCallerAsOfTheOthersAndAtLeastATile) {
  shares.add_decodes(*greedy, 100);
  shares.add_decodes(*modest, 1);
  EXPECT_EQ(shares.decode_rows_max(*greedy), 16);
  EXPECT_EQ(shares.decode_rows_max(*modest), 100);
  shares.add_decodes(*third, 30);
  EXPECT_EQ(shares.decode_rows_max(*greedy), 31);
}

TEST_F(Steps, CountAQuarterOfOthersPrompts) {
  shares.add_decodes(*greedy, 100);
  shares.expect_prompt(*modest, 400);
  EXPECT_EQ(shares.decode_rows_max(*greedy), 100);
  shares.expect_prompt(*greedy, 400);  // It has no credit.
  shares.expect_prompt(*third, 40);
  EXPECT_EQ(shares.decode_rows_max(*greedy), 110);
  EXPECT_EQ(shares.decode_rows_max(*modest), 110);
  shares.expect_prompt(*third, 4000);  // More than its credit.
  shares.expect_prompt(*third, 4000);
  EXPECT_EQ(shares.decode_rows_max(*modest), 228);  // No more than the step can have.
}

TEST_F(Steps, HaveNoMorePromptsInDebtThanTheOthersHaveRows) {
  shares.add_decodes(*modest, 3);
  EXPECT_EQ(shares.prompt_tokens_max(*greedy, 0), 16);
  EXPECT_EQ(shares.prompt_tokens_max(*greedy, 80), 80);  // The cost model knows better.
  shares.expect_prompt(*modest, 400);
  EXPECT_EQ(shares.prompt_tokens_max(*greedy, 0), 103);
  shares.add_decodes(*greedy, 40);
  EXPECT_EQ(shares.prompt_tokens_max(*greedy, 0), 63);
  shares.add_prompt(*greedy, 60);
  EXPECT_EQ(shares.prompt_tokens_max(*greedy, 0), 3);
}

TEST_F(Steps, DoNotBoundPromptsWithinTheCredit) {
  shares.add_decodes(*greedy, 3);
  EXPECT_EQ(shares.prompt_tokens_max(*modest, 0), Shares::kCredit);
  shares.add_prompt(*modest, Shares::kCredit - 48);
  EXPECT_EQ(shares.prompt_tokens_max(*modest, 0), 48);
}

TEST_F(Steps, ShareWhatIsAllowedAmongAllCallersInDebt) {
  for (int i = 0; i < 20; ++i) {
    shares.charge(*greedy, 500);
    compute(shares, *third, 500);
  }
  ASSERT_TRUE(shares.in_debt(*greedy) && shares.in_debt(*third));
  shares.add_decodes(*modest, 3);
  shares.add_prompt(*greedy, 10);
  EXPECT_EQ(shares.prompt_tokens_max(*third, 0), 6);
}

}  // namespace
}  // namespace weir::sched
