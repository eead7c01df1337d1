#include "ssd/expert_forecast.h"

#include <gtest/gtest.h>

namespace weir::ssd {
namespace {

// Qwen3-30B-A3B at 4 bits: 17 GB of experts, 1.1 GB of them for a token.
constexpr ExpertLoad kLoad = {
    .bank_bytes = 17'000'000'000, .cycle_bytes = 1'060'000'000, .token_bytes = 1'900'000'000};

ExpertLoad with_memory(double share) {
  ExpertLoad load = kLoad;
  load.memory_bytes = static_cast<uint64_t>(share * static_cast<double>(load.bank_bytes));
  return load;
}

TEST(ExpertForecast, MoreMemoryFindsMoreReadsLessAndIsFaster) {
  const ReadSpeed speed = {.memory_bytes_per_second = 30e9, .disk_bytes_per_second = 2e9};
  double found = -1, read = 1e18, tokens = 0;
  for (double share = 0; share <= 1.2; share += 0.05) {
    const ExpertLoad load = with_memory(share);
    EXPECT_GE(expected_hit_ratio(load), found);
    EXPECT_LE(expected_bytes_per_token(load), read);
    EXPECT_GE(expected_tokens_per_second(load, speed), tokens);
    found = expected_hit_ratio(load);
    read = expected_bytes_per_token(load);
    tokens = expected_tokens_per_second(load, speed);
  }
  EXPECT_EQ(found, 1);
  EXPECT_EQ(read, 0);
  EXPECT_NEAR(tokens, 30e9 / 1.9e9, 1e-9) << "all in memory: as fast as it is read";
}

TEST(ExpertForecast, WithoutMemoryEveryTokenReadsItsExperts) {
  EXPECT_EQ(expected_hit_ratio(with_memory(0)), 0);
  EXPECT_EQ(expected_bytes_per_token(with_memory(0)), 1.06e9);
}

// What servers report for models of 30 to 750 billion parameters.
TEST(ExpertForecast, LiesWithinWhatOthersHaveSeen) {
  EXPECT_NEAR(expected_hit_ratio(with_memory(0.12)), 0.54, 0.1);
  EXPECT_NEAR(expected_hit_ratio(with_memory(0.28)), 0.72, 0.1);
  EXPECT_NEAR(expected_hit_ratio(with_memory(0.5)), 0.8, 0.1);
}

TEST(ExpertForecast, SaysHowToMeasureWhatIsNotKnown) {
  EXPECT_NE(forecast_text(with_memory(0.2), std::nullopt).find("weir calibrate"),
            std::string::npos);
  EXPECT_NE(forecast_text(with_memory(0.2), ReadSpeed{30e9, 2e9}).find("tokens/s"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::ssd
