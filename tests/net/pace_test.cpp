#include "net/pace.h"

#include <gtest/gtest.h>

namespace weir::net {
namespace {

TEST(Pace, IsWaitedForSinceItsBytesWouldHaveCome) {
  Pace pace;
  pace.begin(10'000, 500);
  EXPECT_EQ(pace.since_ms(), 10'000u);
  pace.move(40'000, 1'500, 100);  // Ten seconds' worth within thirty.
  EXPECT_EQ(pace.since_ms(), 20'000u);
  pace.move(41'000, 1'500, 100);
  EXPECT_EQ(pace.since_ms(), 20'000u);
}

TEST(Pace, KeepsNoTimeThatItGained) {
  Pace pace;
  pace.begin(1'000, 0);
  pace.move(2'000, 1 << 30, 100);
  EXPECT_EQ(pace.since_ms(), 2'000u);
  pace.move(50'000, (1 << 30) + 100, 100);
  EXPECT_EQ(pace.since_ms(), 3'000u);
}

TEST(Pace, CountsSingleBytes) {
  Pace pace;
  pace.begin(0, 0);
  for (uint64_t i = 1; i <= 1 << 20; ++i) pace.move(60'000, i, 1 << 20);
  EXPECT_NEAR(static_cast<double>(pace.since_ms()), 1'000, 1);
}

}  // namespace
}  // namespace weir::net
