#include "fit/speed.h"

#include <gtest/gtest.h>

namespace weir::fit {
namespace {

constexpr MachineSpeed kMachine = {.memory_bytes_per_second = 100e9,
                                   .int8_per_second = 4e12,
                                   .f32_per_second = 1e12,
                                   .bf16_per_second = 0};

// 8 G weights in half a byte.
constexpr TokenCost kFourBits = {.weight_bytes = 4'500'000'000, .macs = 8'000'000'000};

TEST(Speed, IsThatOfReadingTheWeightsAndOfHalfThePeak) {
  const Speed speed = expected_speed(kFourBits, kMachine);
  EXPECT_NEAR(speed.decode, 0.85 * 100 / 4.5, 1e-9);
  EXPECT_NEAR(speed.prompt, 0.5 * 4e12 / 16e9, 1e-9);
}

TEST(Speed, OfFloatsIsBoundByTheArithmeticOfFloats) {
  TokenCost cost = kFourBits;
  cost.weight_bytes = 2 * cost.macs;
  EXPECT_NEAR(expected_speed(cost, kMachine).prompt, 0.5 * 1e12 / 16e9, 1e-9);
  MachineSpeed tiles = kMachine;
  tiles.bf16_per_second = 3e12;
  EXPECT_NEAR(expected_speed(cost, tiles).prompt, 0.5 * 3e12 / 16e9, 1e-9);
  EXPECT_NEAR(expected_speed(kFourBits, tiles).prompt, 0.5 * 3e12 / 16e9, 1e-9);
  cost.exact = true;
  EXPECT_NEAR(expected_speed(cost, tiles).prompt, 0.5 * 1e12 / 16e9, 1e-9);
}

TEST(Speed, CountsKeysValuesAndStatesOfAConversation) {
  ModelFootprint model;
  model.kv_groups = {{.window = 0, .page_bytes = 1000}, {.window = 64, .page_bytes = 10}};
  model.state_bytes = 7;
  const TokenCost cost = token_cost({.weight_bytes = 5, .macs = 3}, model, false);
  EXPECT_EQ(cost.kv_bytes, 32 * 1000 + 2 * 10 + 2 * 7);
  EXPECT_EQ(cost.weight_bytes, 5);
}

TEST(Speed, IsTold) {
  EXPECT_EQ(describe({.decode = 100, .prompt = 1000}),
            "about 70 to 120 tokens a second, prompts 700 to 1200");
  EXPECT_EQ(describe({.decode = 2, .prompt = 0}), "about 1.4 to 2.4 tokens a second");
}

}  // namespace
}  // namespace weir::fit
