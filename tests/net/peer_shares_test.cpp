#include "net/peer_shares.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace weir::net {
namespace {

struct Shares {
  explicit Shares(size_t most) : all(most) {}
  PeerShare& add(PeerId peer, size_t amount, uint64_t yields_from_ms = PeerShare::kNever) {
    PeerShare& share = list.emplace_back();
    share.peer = peer;
    EXPECT_TRUE(all.hold(share, amount));
    all.set_yield(share, yields_from_ms);
    return share;
  }
  PeerShares all;
  std::deque<PeerShare> list;
};

TEST(PeerShares, TheLongestWaitingOfThePeerThatHoldsMostYields) {
  Shares shares(1'000);
  shares.add(1, 100, 5);
  PeerShare& newer = shares.add(2, 100, 20);
  PeerShare& older = shares.add(2, 100, 10);
  PeerShare wanting{.peer = 3};
  EXPECT_EQ(shares.all.first_to_yield(wanting, 50, 100), &older);
  shares.all.hold(older, 0);
  EXPECT_EQ(older.yields_from_ms, PeerShare::kNever);
  shares.all.set_yield(newer, 150);
  EXPECT_EQ(shares.all.first_to_yield(wanting, 50, 100), &shares.list[0]) << "its time has come";
  EXPECT_EQ(shares.all.first_to_yield(wanting, 150, 100), nullptr) << "it holds less than that";
  EXPECT_EQ(shares.all.first_to_yield(wanting, 10, 100), &shares.list[0]);
  PeerShare same{.peer = 1};
  EXPECT_EQ(shares.all.first_to_yield(same, 500, 100), &shares.list[0]) << "its peer's own";
  shares.all.check();
}

TEST(PeerShares, NoPeerTakesTheOthersPart) {
  Shares shares(900);
  PeerShare& greedy = shares.add(1, 450);
  EXPECT_FALSE(shares.all.hold(greedy, 500));
  EXPECT_EQ(greedy.held, 450u);
  shares.add(2, 200);
  EXPECT_TRUE(shares.all.hold_any(greedy, 700)) << "where a fair part is not asked for";
  EXPECT_FALSE(shares.all.hold_any(greedy, 701));
  EXPECT_TRUE(shares.all.hold(greedy, 100)) << "less is always possible";
}

TEST(PeerShares, RandomOperationsKeepTheInvariants) {
  std::mt19937 random(7);
  Shares shares(10'000);
  for (int i = 0; i < 40; ++i) shares.list.emplace_back().peer = random() % 7;
  for (int step = 0; step < 20'000; ++step) {
    PeerShare& share = shares.list[random() % shares.list.size()];
    switch (random() % 4) {
      case 0:
        shares.all.hold(share, random() % 2 == 0 ? 0 : random() % 2'000);
        break;
      case 1:
        shares.all.hold_any(share, random() % 500);
        break;
      case 2:
        shares.all.set_yield(share, random() % 3 == 0 ? PeerShare::kNever : random() % 100);
        break;
      case 3:
        if (PeerShare* const found = shares.all.first_to_yield(share, random() % 500, 50)) {
          EXPECT_LE(found->yields_from_ms, 50u);
          shares.all.hold(*found, 0);
        }
    }
    shares.all.check();
  }
  for (PeerShare& share : shares.list) shares.all.hold(share, 0);
  EXPECT_EQ(shares.all.used(), 0u);
}

}  // namespace
}  // namespace weir::net
