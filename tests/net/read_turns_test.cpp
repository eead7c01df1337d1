#include "net/read_turns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>

namespace weir::net {
namespace {

// Connections are only named here, never looked into.
HttpConnection* named(size_t number) { return reinterpret_cast<HttpConnection*>(number * 64); }

std::vector<size_t> begin(ReadTurns& turns) {
  std::vector<HttpConnection*> go_on;
  turns.begin(go_on);
  std::vector<size_t> numbers;
  for (const HttpConnection* c : go_on) numbers.push_back(reinterpret_cast<size_t>(c) / 64);
  return numbers;
}

TEST(ReadTurns, APeerHasItsPartOfEachTurn) {
  ReadTurns turns;
  turns.count_read(1, ReadTurns::kPeerCost - 1);
  turns.count_read(2, 10);
  EXPECT_FALSE(turns.had_part(1));
  turns.count(1, 1);
  EXPECT_TRUE(turns.had_part(1));
  EXPECT_FALSE(turns.had_part(2));
  EXPECT_FALSE(turns.had_part(3));
  begin(turns);
  EXPECT_FALSE(turns.had_part(1));
}

TEST(ReadTurns, ConnectionsWaitInOrderAndLeave) {
  ReadTurns turns;
  turns.count_read(1, ReadTurns::kPeerCost);
  std::array<ReadTurns::Ticket, 5> tickets{};
  for (size_t i = 0; i < tickets.size(); ++i) tickets[i] = turns.wait(1, named(i + 1));
  turns.leave(1, tickets[1]);
  EXPECT_EQ(begin(turns), (std::vector<size_t>{1, 3, 4, 5}));
  EXPECT_FALSE(turns.any_waiting());
  EXPECT_FALSE(turns.must_wait(1));
}

TEST(ReadTurns, WhatComesLaterWaitsAfterThoseThatWait) {
  ReadTurns turns;
  for (int i = 0; i < 100; ++i) turns.count_read(1, 64 << 10);
  for (size_t i = 1; i <= 6; ++i) turns.wait(1, named(i));
  EXPECT_EQ(begin(turns).size(), 5u) << "full reads are expected of it by now";
  EXPECT_TRUE(turns.any_waiting());
  EXPECT_TRUE(turns.must_wait(1)) << "one of its connections waits";
  EXPECT_EQ(begin(turns), std::vector<size_t>{6});
}

TEST(ReadTurns, MoreShortReadsGoOnThanLongOnes) {
  ReadTurns turns;
  for (int i = 0; i < 100; ++i) {
    turns.count_read(1, 64 << 10);
    turns.count_read(2, 300);
  }
  for (size_t i = 0; i < 400; ++i) turns.wait(1 + i % 2, named(1 + i));
  const std::vector<size_t> found = begin(turns);
  const auto of_first = std::ranges::count_if(found, [](size_t n) { return n % 2 == 1; });
  EXPECT_LE(of_first, 5);
  EXPECT_GE(std::ssize(found) - of_first, 100);
}

TEST(ReadTurns, ManyPeersShareATurnAndNoneIsForgotten) {
  ReadTurns turns;
  constexpr size_t kPeers = 1000;
  for (size_t peer = 0; peer < kPeers; ++peer)
    for (int i = 0; i < 3; ++i) turns.wait(peer, named(peer + 1));
  std::vector<size_t> seen(kPeers + 1);
  for (int turn = 0; turn < 1000 && turns.any_waiting(); ++turn) {
    const std::vector<size_t> found = begin(turns);
    EXPECT_LE(found.size(), ReadTurns::kTurnCost / ReadTurns::kReadCostMin);
    for (const size_t peer : found) ++seen[peer];
    const auto [least, most] = std::ranges::minmax(std::span(seen).subspan(1));
    EXPECT_LE(most - least, 1u);
  }
  EXPECT_FALSE(turns.any_waiting());
}

}  // namespace
}  // namespace weir::net
