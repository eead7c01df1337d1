// RoutingTable: what it is filled with is what it says, position by position.
#include "measure/routing_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace weir::measure {
namespace {

constexpr RoutingTable::Shape kShape = {
    .layers = 3, .experts = 16, .top_k = 2, .sequences = 2, .tokens = 20};

std::vector<int16_t> all_of(const RoutingTable& table, int32_t sequence, int32_t position) {
  std::vector<int16_t> all;
  for (int32_t layer = 0; layer < kShape.layers; ++layer)
    for (const int16_t expert : table.experts(layer, sequence, position)) all.push_back(expert);
  return all;
}

TEST(RoutingTable, ModelledRoutingIsThatOfTheModelAndTheSeed) {
  const auto a = RoutingTable::modelled(kShape, 1), b = RoutingTable::modelled(kShape, 1),
             c = RoutingTable::modelled(kShape, 2);
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(a->name(), "modelled routing");
  int32_t same = 0, foreseen = 0;
  for (int32_t token = 0; token < kShape.tokens; ++token) {
    EXPECT_EQ(all_of(*a, 0, token), all_of(*b, 0, token));
    same += all_of(*a, 0, token) == all_of(*c, 0, token) ? 1 : 0;
    for (int32_t layer = 0; layer < kShape.layers; ++layer) {
      const auto chosen = a->experts(layer, 1, token);
      EXPECT_NE(chosen[0], chosen[1]);
      for (const int16_t early : a->lookahead(layer, 1, token))
        foreseen += std::ranges::count(chosen, early) > 0 ? 1 : 0;
    }
  }
  EXPECT_LT(same, 3);
  EXPECT_GT(foreseen, kShape.tokens * kShape.layers * 2 * 7 / 10);
}

// Independent beside the topic, so that requests need less together, and do not repeat each other.
TEST(RoutingTable, SequencesOfOneTopicShareMore) {
  constexpr RoutingTable::Shape kMany = {
      .layers = 4, .experts = 64, .top_k = 4, .sequences = 6, .tokens = 50};
  const auto distinct = [&](const RoutingTable& table, int32_t token, int32_t layer) {
    std::set<int16_t> all;
    for (int32_t s = 0; s < kMany.sequences; ++s) {
      const auto chosen = table.experts(layer, s, token);
      all.insert(chosen.begin(), chosen.end());
    }
    return static_cast<int32_t>(all.size());
  };
  const auto own = RoutingTable::modelled(kMany, 1);
  const auto one = RoutingTable::modelled(kMany, 1, RoutingTable::Topics::kOne);
  ASSERT_TRUE(own && one);
  EXPECT_EQ(one->name(), "modelled routing, one topic");
  int32_t of_own = 0, of_one = 0;
  for (int32_t token = 0; token < kMany.tokens; ++token)
    for (int32_t layer = 0; layer < kMany.layers; ++layer) {
      EXPECT_TRUE(std::ranges::equal(own->experts(layer, 0, token), one->experts(layer, 0, token)))
          << "the first sequence is the same";
      of_own += distinct(*own, token, layer);
      of_one += distinct(*one, token, layer);
    }
  EXPECT_LT(of_one, of_own * 9 / 10);
  EXPECT_GT(of_one, kMany.tokens * kMany.layers * kMany.top_k * 3 / 2);
}

TEST(RoutingTable, MovesOnAndBeginsAnewBehindItsEnd) {
  auto table = RoutingTable::modelled(kShape, 1);
  ASSERT_TRUE(table);
  const std::vector<int16_t> seventh = all_of(*table, 1, 7);
  EXPECT_EQ(all_of(*table, 1, 7 + kShape.tokens), seventh);
  EXPECT_EQ(all_of(*table, 1 + kShape.sequences, 7), seventh);
  table->move_on(5);
  EXPECT_EQ(all_of(*table, 1, 2), seventh);
}

RouteTrace small_trace(bool early) {
  RouteTrace trace(3, 16, 2);
  const auto chosen = [](int32_t step, int32_t layer) {
    return std::vector<int32_t>{(step + layer) % 16, (step + layer + 8) % 16};
  };
  for (int32_t step = 0; step < 6; ++step)
    for (int32_t layer = 0; layer < 3; ++layer) {
      if (step < 2) {
        trace.add(RouteKind::kPrompt, step, layer, 4, chosen(step, layer));
        continue;
      }
      if (early && layer > 0)
        trace.add(RouteKind::kLookahead, step, layer, 4, std::vector<int32_t>{step, layer + 8});
      trace.add(RouteKind::kDecode, step, layer, 4, chosen(step, layer));
    }
  return trace;
}

TEST(RoutingTable, ARecordIsReadFromItsGeneratedTokensOn) {
  for (const bool early : {false, true}) {
    const auto table = RoutingTable::recorded(kShape, small_trace(early), "t.txt");
    ASSERT_TRUE(table) << table.error().message;
    EXPECT_EQ(table->name(), "routing of t.txt");
    for (int32_t token = 0; token < 8; ++token)
      for (int32_t layer = 0; layer < 3; ++layer) {
        const int32_t step = 2 + token % 4;
        EXPECT_EQ(table->experts(layer, 0, token)[0], (step + layer) % 16);
        // Two sequences read one: the second begins in its middle.
        EXPECT_EQ(table->experts(layer, 1, token)[0], (2 + (token + 2) % 4 + layer) % 16);
        EXPECT_EQ(table->lookahead(layer, 0, token).empty(), !early);
        if (early && layer > 0) {
          EXPECT_EQ(table->lookahead(layer, 0, token)[1], layer + 8);
        }
      }
  }
}

TEST(RoutingTable, RefusesWhatDoesNotFit) {
  RoutingTable::Shape other = kShape;
  other.layers = 4;
  const auto differs = RoutingTable::recorded(other, small_trace(false), "t.txt");
  ASSERT_FALSE(differs);
  EXPECT_EQ(differs.error().message,
            "t.txt: expected routes of 4 layers of 2 of 16 experts, found 3 layers of 2 of 16 "
            "experts");
  const auto empty = RoutingTable::recorded(kShape, RouteTrace(3, 16, 2), "t.txt");
  ASSERT_FALSE(empty);
  EXPECT_NE(empty.error().message.find("found none"), std::string::npos);
  RoutingTable::Shape large = kShape;
  large.sequences = 100000;
  large.tokens = 100000;
  EXPECT_FALSE(RoutingTable::modelled(large, 1));
}

}  // namespace
}  // namespace weir::measure
