#include "base/thread_team.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir {
namespace {

class Teams : public testing::TestWithParam<int> {};

TEST_P(Teams, EveryMemberRunsOncePerRun) {
  ThreadTeam team(GetParam(), false);
  std::vector<int> runs(static_cast<size_t>(GetParam()), 0);
  for (int i = 0; i < 200; ++i) team.run([&](int member) { ++runs[static_cast<size_t>(member)]; });
  for (const int count : runs) EXPECT_EQ(count, 200);
}

// Each phase claims blocks and adds up what the phase before wrote: a block claimed twice or not at
// all, or a barrier that opens early, gives a wrong sum (and a race under ThreadSanitizer).
TEST_P(Teams, BarriersSeparatePhasesAndResetTheWork) {
  constexpr int kBlocks = 37, kPhases = 500;
  ThreadTeam team(GetParam(), false);
  std::vector<int64_t> even(kBlocks, 1), odd(kBlocks, 0);
  team.run([&](int) {
    for (int phase = 0; phase < kPhases; ++phase) {
      const std::vector<int64_t>& from = phase % 2 == 0 ? even : odd;
      std::vector<int64_t>& to = phase % 2 == 0 ? odd : even;
      for (int32_t b; (b = team.claim()) < kBlocks;)
        to[static_cast<size_t>(b)] = from[static_cast<size_t>((b + 1) % kBlocks)] + 1;
      team.barrier();
    }
  });
  for (const int64_t value : even) EXPECT_EQ(value, kPhases + 1);
}

TEST_P(Teams, WorkersWakeAfterSleeping) {
  ThreadTeam team(GetParam(), false);
  std::atomic<int> total{0};
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // Long enough to fall asleep.
    team.run([&](int) { total.fetch_add(1); });
  }
  EXPECT_EQ(total.load(), 3 * GetParam());
}

INSTANTIATE_TEST_SUITE_P(Sizes, Teams, testing::Values(1, 2, 3, 5));

}  // namespace
}  // namespace weir
