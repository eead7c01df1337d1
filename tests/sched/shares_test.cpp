// What callers are due, and what prompts of those that have had more may take.
#include "sched/shares.h"

#include <gtest/gtest.h>

#include <limits>

namespace weir::sched {
namespace {

constexpr int32_t kUnbounded = std::numeric_limits<int32_t>::max();

void compute(Shares& shares, Share& share, int32_t rows) {
  shares.charge(share, rows);
  shares.end_step(rows);
}

TEST(Shares, ACallerBeginsWithCreditAndKeepsItWhileItIsAlone) {
  Shares shares(4);
  Share* const alone = shares.enter(7);
  EXPECT_FALSE(shares.several());
  for (int i = 0; i < 100; ++i) compute(shares, *alone, 512);
  EXPECT_EQ(shares.credit(*alone), Shares::kCredit);
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

TEST(Shares, OneCallerHasAsManyRowsAsTheOthersAndAtLeastATile) {
  EXPECT_EQ(Shares::rows_beside(0), kUnbounded);
  EXPECT_EQ(Shares::rows_beside(1), 16);
  EXPECT_EQ(Shares::rows_beside(40), 40);
}

struct Prompts : testing::Test {
  void SetUp() override {
    for (int i = 0; i < 20; ++i) compute(shares, *greedy, 500);
    begin(0);
  }
  void begin(int32_t beside) {
    for (Share* share : {modest, greedy, third}) Shares::begin(*share);
    shares.begin_prompts(beside);
  }

  Shares shares{4};
  Share* const modest = shares.enter(2);
  Share* const greedy = shares.enter(1);
  Share* const third = shares.enter(3);
};

TEST_F(Prompts, WithoutOthersInTheStepThereIsNoBound) {
  shares.add_decode(*greedy, 5);
  EXPECT_EQ(shares.prompt_tokens_max(*greedy), kUnbounded);
}

TEST_F(Prompts, InDebtTheyTakeNoMoreThanTheOthersHave) {
  shares.add_decode(*modest, 3);
  EXPECT_EQ(shares.prompt_tokens_max(*greedy), 16);
  shares.add_prompt(*modest, 100);
  EXPECT_EQ(shares.prompt_tokens_max(*greedy), 103);
  shares.add_decode(*greedy, 40);
  EXPECT_EQ(shares.prompt_tokens_max(*greedy), 63);
  shares.add_prompt(*greedy, 60);
  EXPECT_EQ(shares.prompt_tokens_max(*greedy), 3);
}

TEST_F(Prompts, TheCostModelMayAllowMore) {
  begin(80);
  shares.add_decode(*modest, 3);
  EXPECT_EQ(shares.prompt_tokens_max(*greedy), 80);
}

TEST_F(Prompts, WithinTheCreditTheyAreNotBounded) {
  shares.add_decode(*greedy, 3);
  EXPECT_EQ(shares.prompt_tokens_max(*modest), Shares::kCredit);
  shares.add_prompt(*modest, 2000);
  EXPECT_EQ(shares.prompt_tokens_max(*modest), 48);
}

TEST_F(Prompts, AllCallersInDebtShareWhatIsAllowed) {
  for (int i = 0; i < 20; ++i) {
    shares.charge(*greedy, 500);
    compute(shares, *third, 500);
  }
  ASSERT_TRUE(shares.in_debt(*greedy) && shares.in_debt(*third));
  shares.add_decode(*modest, 3);
  shares.add_prompt(*greedy, 10);
  EXPECT_EQ(shares.prompt_tokens_max(*third), 6);
}

}  // namespace
}  // namespace weir::sched
