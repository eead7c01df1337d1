#include "base/bell.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace weir {
namespace {

using namespace std::chrono_literals;
using Clock = Bell::Clock;

TEST(Bell, ARingBeforeTheSleepIsNotLost) {
  Bell bell;
  const uint32_t seen = bell.count();
  bell.ring();
  bell.sleep(seen, Clock::time_point::max());
  EXPECT_EQ(bell.count(), seen + 1);
}

TEST(Bell, SleepsUntilItsTimeAndNoLonger) {
  Bell bell;
  const Clock::time_point end = Clock::now() + 20ms;
  bell.sleep(bell.count(), end);
  EXPECT_GE(Clock::now(), end);
  bell.sleep(bell.count(), Clock::now() - 1h);
  bell.sleep(bell.count(), Clock::time_point::min());
}

TEST(Bell, WakesWhoSleepsWithAndWithoutAnEnd) {
  for (const bool bounded : {false, true}) {
    Bell bell;
    std::atomic<uint32_t> rounds{0};
    std::thread owner([&] {
      for (uint32_t round = 0; round < 1000; ++round) {
        bell.sleep(round, bounded ? Clock::now() + 1h : Clock::time_point::max());
        rounds = round + 1;
      }
    });
    for (uint32_t round = 0; round < 1000; ++round) {
      if (round % 100 == 0) std::this_thread::sleep_for(2ms);  // Long enough to fall asleep.
      bell.ring();
      while (rounds <= round) std::this_thread::yield();
    }
    owner.join();
  }
}

}  // namespace
}  // namespace weir
