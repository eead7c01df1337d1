// TimerWheel against a sorted list of deadlines.
#include "net/timer_wheel.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace weir::net {
namespace {

TEST(TimerWheel, ExpiresNeitherEarlyNorMoreThanATickLate) {
  TimerWheel wheel(1'000);
  WheelTimer timer;
  wheel.arm(timer, 1'100);
  uint64_t expired_at = 0;
  for (uint64_t now = 1'000; now < 1'300; ++now)
    wheel.advance(now, [&](WheelTimer&) { expired_at = now; });
  EXPECT_GE(expired_at, 1'100u);
  EXPECT_LE(expired_at, 1'100u + TimerWheel::kTickMs);
  EXPECT_EQ(wheel.next_ms(), std::nullopt);
}

TEST(TimerWheel, RandomOperationsAgreeWithAList) {
  std::mt19937 random(7);
  uint64_t now = 123'456;
  TimerWheel wheel(now);
  std::vector<WheelTimer> timers(200);
  std::vector<uint64_t> deadlines(timers.size(), 0);  // 0: not armed.
  for (int round = 0; round < 20'000; ++round) {
    const size_t i = random() % timers.size();
    if (random() % 4 == 0) {
      wheel.disarm(timers[i]);
      deadlines[i] = 0;
    } else {
      // Up to three turns of the wheel away.
      deadlines[i] = now + random() % (3 * TimerWheel::kSlots * TimerWheel::kTickMs);
      wheel.arm(timers[i], deadlines[i]);
    }
    now += random() % 100 == 0 ? random() % 60'000 : random() % 40;
    wheel.advance(now, [&](WheelTimer& timer) {
      const auto index = static_cast<size_t>(&timer - timers.data());
      ASSERT_NE(deadlines[index], 0u);
      ASSERT_LE(deadlines[index], now);
      deadlines[index] = 0;
      if (random() % 2 == 0) {  // Arming from within is allowed.
        deadlines[index] = now + random() % 1'000;
        wheel.arm(timer, deadlines[index]);
      }
    });
    for (const uint64_t deadline : deadlines)
      ASSERT_TRUE(deadline == 0 || deadline + TimerWheel::kTickMs > now) << "round " << round;
    if (round % 100 == 0) wheel.check();
  }
}

TEST(TimerWheel, NextIsNeverAfterTheFirstDeadlinesTick) {
  std::mt19937 random(8);
  TimerWheel wheel(0);
  std::vector<WheelTimer> timers(50);
  for (int round = 0; round < 1'000; ++round) {
    uint64_t first = UINT64_MAX;
    for (WheelTimer& timer : timers) {
      const uint64_t deadline = 1 + random() % 100'000;
      wheel.disarm(timer);
      wheel.arm(timer, deadline);
      first = std::min(first, deadline);
    }
    ASSERT_TRUE(wheel.next_ms().has_value());
    EXPECT_LT(*wheel.next_ms(), first + TimerWheel::kTickMs);
  }
}

}  // namespace
}  // namespace weir::net
