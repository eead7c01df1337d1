#include "base/thread_team.h"

#include <gtest/gtest.h>

#include <vector>

namespace weir {
namespace {

class Teams : public testing::TestWithParam<int> {};

TEST_P(Teams, EveryMemberRunsOncePerRun) {
  ThreadTeam team(GetParam());
  std::vector<int> runs(static_cast<size_t>(GetParam()), 0);
  for (int i = 0; i < 200; ++i) team.run([&](int member) { ++runs[static_cast<size_t>(member)]; });
  for (const int count : runs) EXPECT_EQ(count, 200);
}

// Each phase claims blocks and adds up what the phase before wrote: a block claimed twice or not at
// all, or a barrier that opens early, gives a wrong sum (and a race under ThreadSanitizer).
TEST_P(Teams, BarriersSeparatePhasesAndResetTheWork) {
  constexpr int kBlocks = 37, kPhases = 500;
  ThreadTeam team(GetParam());
  std::vector<int64_t> even(kBlocks, 1), odd(kBlocks, 0);
  team.run([&](int member) {
    for (int phase = 0; phase < kPhases; ++phase) {
      const std::vector<int64_t>& from = phase % 2 == 0 ? even : odd;
      std::vector<int64_t>& to = phase % 2 == 0 ? odd : even;
      for (int32_t b; (b = team.claim()) < kBlocks;)
        to[static_cast<size_t>(b)] = from[static_cast<size_t>((b + 1) % kBlocks)] + 1;
      team.barrier(member);
    }
  });
  for (const int64_t value : even) EXPECT_EQ(value, kPhases + 1);
}

// The same of shares, over several runs, which may end after an odd number of phases.
TEST_P(Teams, SharesAreClaimedOnceByWhomeverAndResetByBarriers) {
  constexpr int32_t kBlocks = 11, kRuns = 30;
  ThreadTeam team(GetParam());
  const auto blocks = static_cast<size_t>(kBlocks * GetParam());
  std::vector<int64_t> even(blocks, 1), odd(blocks, 0);
  int64_t phases = 0;
  for (int run = 0; run < kRuns; ++run) {
    const int64_t begin = phases;
    phases += 2 * (run % 3) + 1;
    team.run([&](int member) {
      for (int64_t phase = begin; phase < phases; ++phase) {
        const std::vector<int64_t>& from = phase % 2 == 0 ? even : odd;
        std::vector<int64_t>& to = phase % 2 == 0 ? odd : even;
        int32_t share = 0, block = 0;
        while (team.claim_share(member, kBlocks, share, block)) {
          const auto at = static_cast<size_t>(share * kBlocks + block);
          to[at] = from[(at + 1) % blocks] + 1;
        }
        if (phase + 1 < phases) team.barrier(member);
      }
    });
  }
  for (const int64_t value : phases % 2 == 0 ? even : odd) EXPECT_EQ(value, phases + 1);
}

// Whoever finds its own share empty helps the others.
TEST_P(Teams, OneMemberCanDoAllShares) {
  ThreadTeam team(GetParam());
  std::vector<int> claimed(static_cast<size_t>(3 * GetParam()));
  team.run([&](int member) {
    int32_t share = 0, block = 0;
    while (member == 0 && team.claim_share(member, 3, share, block))
      ++claimed[static_cast<size_t>(3 * share + block)];
  });
  EXPECT_EQ(claimed, std::vector<int>(claimed.size(), 1));
}

TEST_P(Teams, WorkersWakeAfterSleeping) {
  ThreadTeam team(GetParam());
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
