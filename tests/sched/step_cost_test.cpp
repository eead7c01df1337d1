#include "sched/step_cost.h"

#include <gtest/gtest.h>

#include <random>

namespace weir::sched {
namespace {

constexpr double kDecodeRow = 0.2e-3, kDecodeStep = 4e-3, kToken = 0.3e-3, kKey = 0.1e-6;

double true_seconds(const StepLoad& load) {
  return (load.decode_rows > 0 ? kDecodeStep + kDecodeRow * load.decode_rows : 0) +
         kToken * load.prompt_tokens + kKey * load.keys_seen;
}

StepLoad chunk(int32_t rows, int32_t position, int32_t tokens) {
  return {.decode_rows = rows,
          .prompt_tokens = tokens,
          .keys_seen = StepCost::keys_seen(position, tokens)};
}

TEST(StepCost, CountsTheKeysThatAChunkSees) {
  for (const int32_t position : {0, 7, 100}) {
    int64_t seen = 0;
    for (int32_t i = 0; i < 9; ++i) seen += position + i + 1;
    EXPECT_EQ(StepCost::keys_seen(position, 9), static_cast<double>(seen));
  }
}

TEST(StepCost, StartsWithAShortChunkAndNeverStopsPrompts) {
  StepCost cost;
  const int32_t first = cost.tokens_within(1, 8, 0);
  EXPECT_GE(first, StepCost::kTokensMin);
  EXPECT_LE(first, 64);
  cost.observe({.decode_rows = 8}, 0.01);
  cost.observe(chunk(8, 0, 64), 0.03);
  EXPECT_EQ(cost.tokens_within(0.005, 8, 0), StepCost::kTokensMin);  // Less than decoding takes.
  EXPECT_EQ(cost.tokens_within(1e-9, 0, 100000), StepCost::kTokensMin);
}

TEST(StepCost, ChunksFillTheLimitWhateverTheirPosition) {
  StepCost cost;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> noise(0.97, 1.03);
  for (int i = 0; i < 100; ++i) {
    cost.observe({.decode_rows = 8}, noise(random) * true_seconds({.decode_rows = 8}));
    const StepLoad load = chunk(8, static_cast<int32_t>(random() % 4000), 16 + random() % 500);
    cost.observe(load, noise(random) * true_seconds(load));
  }
  for (const int32_t position : {0, 1000, 4000}) {
    for (const double limit : {0.020, 0.050, 0.150}) {
      const int32_t tokens = cost.tokens_within(limit, 8, position);
      const double taken = true_seconds(chunk(8, position, tokens));
      EXPECT_LE(taken, limit) << "position " << position;
      EXPECT_GE(taken, 0.85 * limit) << "position " << position << " tokens " << tokens;
    }
  }
}

TEST(StepCost, FollowsAMachineThatBecomesSlower) {
  StepCost cost;
  for (int i = 0; i < 1000; ++i) {  // The margin rises with the slower steps, and falls again.
    const double factor = i < 100 ? 1 : 3;
    cost.observe({.decode_rows = 4}, factor * true_seconds({.decode_rows = 4}));
    const StepLoad load = chunk(4, i * 37 % 2000, 32 + i % 7 * 64);
    cost.observe(load, factor * true_seconds(load));
  }
  const int32_t tokens = cost.tokens_within(0.1, 4, 500);
  EXPECT_NEAR(3 * true_seconds(chunk(4, 500, tokens)), 0.1, 0.015);
}

// One step in twenty takes half as long again: chunks are cut so that few of those pass the limit,
// where the average alone would let all of them.
TEST(StepCost, KeepsAMarginForStepsThatVary) {
  StepCost cost;
  std::mt19937 random(1);
  int long_steps = 0, steps = 0;
  for (int i = 0; i < 4000; ++i) {
    const int32_t position = i * 37 % 2000;
    const StepLoad load = chunk(8, position, cost.tokens_within(0.05, 8, position));
    const double seconds = (random() % 20 == 0 ? 1.5 : 1) * true_seconds(load);
    cost.observe({.decode_rows = 8}, true_seconds({.decode_rows = 8}));
    cost.observe(load, seconds);
    if (i < 1000) continue;
    ++steps;
    long_steps += seconds > 0.05 ? 1 : 0;
  }
  EXPECT_LE(long_steps, steps * 3 / 100);
}

TEST(StepCost, AQuietMachineNeedsNoMargin) {
  StepCost cost;
  for (int i = 0; i < 500; ++i) {
    const StepLoad load = chunk(8, i * 37 % 2000, 16 + i % 5 * 100);
    cost.observe({.decode_rows = 8}, true_seconds({.decode_rows = 8}));
    cost.observe(load, true_seconds(load));
  }
  EXPECT_GE(true_seconds(chunk(8, 500, cost.tokens_within(0.05, 8, 500))), 0.047);
}

// A prompt costs something for being there, and prompts come one after the other: chunks of about
// one size, of which each seems to say that a token costs what the whole step does.
TEST(StepCost, FindsTheChunkBesideAFixedCost) {
  constexpr double kPrompt = 6e-3, kLimit = 0.026;
  StepCost cost;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> noise(0.97, 1.03);
  int32_t position = 0;
  double taken = 0;
  for (int i = 0; i < 2000; ++i) {
    if (i % 50 == 0) cost.observe({.decode_rows = 8}, true_seconds({.decode_rows = 8}));
    const StepLoad load = chunk(8, position, cost.tokens_within(kLimit, 8, position));
    const double seconds = noise(random) * (true_seconds(load) + kPrompt);
    cost.observe(load, seconds);
    position = position > 4000 ? 0 : position + load.prompt_tokens;
    if (i >= 1000) taken += seconds / 1000;
  }
  EXPECT_GE(taken, 0.8 * kLimit);
  EXPECT_LE(taken, kLimit);
}

TEST(StepCost, StepsOfOneSizeAreEnough) {
  StepCost cost;
  for (int i = 0; i < 20; ++i) cost.observe(chunk(0, 0, 64), 64 * kToken);
  EXPECT_NEAR(cost.tokens_within(0.03, 0, 0), 100, 10);  // A margin is still kept.
}

}  // namespace
}  // namespace weir::sched
