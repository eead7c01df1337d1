// What prompts and generated tokens of callers that have had more may take of a step.
#include "sched/step_shares.h"

#include <gtest/gtest.h>

#include <limits>

namespace weir::sched {
namespace {

constexpr int32_t kUnbounded = std::numeric_limits<int32_t>::max();

void compute(Shares& shares, Share& share, int32_t rows) {
  shares.charge(share, rows);
  shares.end_step(rows);
}

struct Steps : testing::Test {
  void SetUp() override {
    for (int i = 0; i < 20; ++i) compute(shares, *greedy, 500);
    begin(512);
  }
  void begin(int32_t prompt_tokens) {
    for (Share* share : {modest, greedy, third}) StepShares::begin(*share);
    step = StepShares(shares, prompt_tokens);
  }

  Shares shares{4};
  StepShares step{shares, 0};
  Share* const modest = shares.enter(2);
  Share* const greedy = shares.enter(1);
  Share* const third = shares.enter(3);
};

TEST_F(Steps, WithoutOthersInThemHaveNoBounds) {
  step.add_decodes(*greedy, 5);
  EXPECT_EQ(step.decode_rows_max(*greedy), kUnbounded);
  EXPECT_EQ(step.prompt_tokens_max(*greedy, 0), kUnbounded);
}

TEST_F(Steps, HaveTheirBoundsForAWhileAfterTheOthersHaveEnded) {
  shares.note_bound();
  compute(shares, *greedy, 16);
  shares.leave(*modest);
  shares.leave(*third);
  for (int i = 0; i < Shares::kLinger; ++i) {
    ASSERT_TRUE(shares.several());
    begin(512);
    step.add_decodes(*greedy, 100);
    EXPECT_EQ(step.decode_rows_max(*greedy), 16);
    shares.note_bound();
    compute(shares, *greedy, 16);
  }
  EXPECT_FALSE(shares.several());
}

TEST_F(Steps, HaveAsManyRowsOfOneCallerAsOfTheOthersAndAtLeastATile) {
  step.add_decodes(*greedy, 100);
  step.add_decodes(*modest, 1);
  EXPECT_EQ(step.decode_rows_max(*greedy), 16);
  EXPECT_EQ(step.decode_rows_max(*modest), 100);
  step.add_decodes(*third, 30);
  EXPECT_EQ(step.decode_rows_max(*greedy), 31);
}

TEST_F(Steps, CountAQuarterOfOthersPrompts) {
  step.add_decodes(*greedy, 100);
  step.expect_prompt(*modest, 400);
  EXPECT_EQ(step.decode_rows_max(*greedy), 100);
  step.expect_prompt(*greedy, 400);  // It has no credit.
  step.expect_prompt(*third, 40);
  EXPECT_EQ(step.decode_rows_max(*greedy), 110);
  EXPECT_EQ(step.decode_rows_max(*modest), 110);
  step.expect_prompt(*third, 4000);  // More than its credit.
  step.expect_prompt(*third, 4000);
  EXPECT_EQ(step.decode_rows_max(*modest), 228);  // No more than the step can have.
}

TEST_F(Steps, HaveNoMorePromptsInDebtThanTheOthersHaveRows) {
  step.add_decodes(*modest, 3);
  EXPECT_EQ(step.prompt_tokens_max(*greedy, 0), 16);
  EXPECT_EQ(step.prompt_tokens_max(*greedy, 80), 80);  // The cost model knows better.
  step.expect_prompt(*modest, 400);
  EXPECT_EQ(step.prompt_tokens_max(*greedy, 0), 103);
  step.add_decodes(*greedy, 40);
  EXPECT_EQ(step.prompt_tokens_max(*greedy, 0), 63);
  step.add_prompt(*greedy, 60);
  EXPECT_EQ(step.prompt_tokens_max(*greedy, 0), 3);
}

TEST_F(Steps, DoNotBoundPromptsWithinTheCredit) {
  step.add_decodes(*greedy, 3);
  EXPECT_EQ(step.prompt_tokens_max(*modest, 0), Shares::kCredit);
  step.add_prompt(*modest, Shares::kCredit - 48);
  EXPECT_EQ(step.prompt_tokens_max(*modest, 0), 48);
}

TEST_F(Steps, ShareWhatIsAllowedAmongAllCallersInDebt) {
  for (int i = 0; i < 20; ++i) {
    shares.charge(*greedy, 500);
    compute(shares, *third, 500);
  }
  ASSERT_TRUE(shares.in_debt(*greedy) && shares.in_debt(*third));
  step.add_decodes(*modest, 3);
  step.add_prompt(*greedy, 10);
  EXPECT_EQ(step.prompt_tokens_max(*third, 0), 6);
}

}  // namespace
}  // namespace weir::sched
