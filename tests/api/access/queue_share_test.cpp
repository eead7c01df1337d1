#include "api/access/queue_share.h"

#include <gtest/gtest.h>

#include <array>

namespace weir::api {
namespace {

// How many places the caller gets of a queue that holds `others` requests beside the lent ones.
size_t take_all(QueueShare& share, uint64_t caller, int32_t others) {
  size_t taken = 0;
  while (share.take(caller, others + static_cast<int32_t>(share.lent()))) ++taken;
  return taken;
}

TEST(QueueShare, LendsHalfOfWhatOthersLeave) {
  for (const auto& [others, most] : {std::pair{0, 512}, {500, 262}, {1000, 12}, {1023, 1}}) {
    QueueShare share(1024);
    for (uint64_t caller = 1; caller <= 600; ++caller) take_all(share, caller, others);
    EXPECT_LE(share.lent(), static_cast<size_t>(most)) << others;
    EXPECT_GE(share.lent(), static_cast<size_t>(most) * 9 / 10) << others;
  }
  QueueShare share(1024);
  EXPECT_EQ(take_all(share, 1, 1024), 0u);
}

TEST(QueueShare, IsFairBetweenCallers) {
  QueueShare share(1024);
  std::array<size_t, 8> held{};
  held[1] = take_all(share, 1, 0);
  EXPECT_EQ(held[1], 256u);
  // Those that come later find a place, and as requests finish all come to about the same.
  for (int turn = 0; turn < 400; ++turn)
    for (uint64_t caller = 1; caller < held.size(); ++caller) {
      if (held[caller] > 0) share.give_back(caller, 1), --held[caller];
      held[caller] += take_all(share, caller, 0);
      EXPECT_GE(held[caller], 1u);
    }
  for (uint64_t caller = 1; caller < held.size(); ++caller) EXPECT_NEAR(held[caller], 64, 8);
}

TEST(QueueShare, LendsSomethingOfTheShortestQueue) {
  for (const int32_t queue : {1, 2, 3}) {
    QueueShare share(queue);
    EXPECT_EQ(take_all(share, 1, 0), 1u) << queue;
    EXPECT_EQ(share.lent(), 1u);
  }
}

TEST(QueueShare, TellsThatACallerWaits) {
  QueueShare share(2);
  EXPECT_TRUE(share.take(1, 0));
  EXPECT_FALSE(share.give_back(1, 1));
  EXPECT_TRUE(share.take(1, 0));
  EXPECT_FALSE(share.take(2, 1));
  EXPECT_TRUE(share.give_back(1, 1));
  EXPECT_TRUE(share.take(2, 0));
  EXPECT_FALSE(share.give_back(2, 1));
}

}  // namespace
}  // namespace weir::api
