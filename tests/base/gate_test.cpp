#include "base/gate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace weir {
namespace {

TEST(Gate, WhoHasSeenAnEarlierCountDoesNotWait) {
  Gate gate;
  gate.move_on();
  gate.wait(0);
  EXPECT_EQ(gate.count(), 1u);
}

TEST(Gate, WakesThoseWhoSleepAndThoseWhoSpin) {
  Gate gate;
  for (uint32_t round = 0; round < 20; ++round) {
    int written = 0;
    std::atomic<int> sum{0};
    std::vector<std::thread> waiting;
    for (int i = 0; i < 3; ++i)
      waiting.emplace_back([&] {
        gate.wait(round);
        sum += written;
      });
    // Long enough to fall asleep, or not.
    std::this_thread::sleep_for(std::chrono::microseconds(round % 2 == 0 ? 5000 : 1));
    written = 7;
    gate.move_on();
    for (std::thread& thread : waiting) thread.join();
    EXPECT_EQ(sum, 21);
  }
}

// No wake may be lost, whether the other side sleeps, spins or is about to do either.
TEST(Gate, TwoThreadsTakeTurns) {
  constexpr uint32_t kTurns = 20'000;
  Gate ping, pong;
  uint32_t count = 0;
  std::thread other([&] {
    for (uint32_t i = 0; i < kTurns; ++i) {
      ping.wait(i);
      ++count;
      pong.move_on();
    }
  });
  for (uint32_t i = 0; i < kTurns; ++i) {
    ++count;
    ping.move_on();
    pong.wait(i);
  }
  other.join();
  EXPECT_EQ(count, 2 * kTurns);
}

}  // namespace
}  // namespace weir
