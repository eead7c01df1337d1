// The best of many scored positions, against a sort of all of them.
#include "model/layers/best_positions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace weir::model {
namespace {

using Positions = std::vector<int32_t>;

Positions ascending(const ScoredPosition* found, int32_t count) {
  Positions positions;
  for (int32_t i = 0; i < count; ++i) positions.push_back(found[i].position);
  std::ranges::sort(positions);
  return positions;
}

Positions best_of(const std::vector<ScoredPosition>& all, int32_t wanted) {
  std::vector<ScoredPosition> memory(static_cast<size_t>(2 * wanted));
  BestPositions best(memory.data(), wanted);
  for (const ScoredPosition& found : all) best.offer(found);
  const int32_t count = best.finish();
  return ascending(memory.data(), count);
}

std::vector<ScoredPosition> scored(const std::vector<float>& scores) {
  std::vector<ScoredPosition> all;
  for (const float score : scores) all.push_back({score, static_cast<int32_t>(all.size())});
  return all;
}

TEST(BestPositions, AreThoseThatASortPutsFirst) {
  std::mt19937 random(7);
  for (int32_t round = 0; round < 300; ++round) {
    const auto count = static_cast<int32_t>(random() % 400 + 1);
    const auto wanted = static_cast<int32_t>(random() % 60 + 1);
    const auto distinct = random() % 50 + 1;  // Few: many are equal.
    std::vector<float> scores;
    for (int32_t i = 0; i < count; ++i)
      scores.push_back(static_cast<float>(random() % distinct) - 20);
    std::vector<ScoredPosition> all = scored(scores), sorted = all;
    std::ranges::stable_sort(sorted,
                             [](const auto& a, const auto& b) { return a.score > b.score; });
    const Positions expected = ascending(sorted.data(), std::min(count, wanted));
    EXPECT_EQ(best_of(all, wanted), expected);
    std::ranges::shuffle(all, random);
    EXPECT_EQ(best_of(all, wanted), expected) << "in another order";
  }
}

TEST(BestPositions, OfEqualScoresTheLowerComesFirst) {
  EXPECT_EQ(best_of(scored({1, 1, 1, 1, 1, 1, 1}), 3), (Positions{0, 1, 2}));
  EXPECT_EQ(best_of(scored({0, 1, -0.0f, 2, 0}), 3), (Positions{0, 1, 3}));
}

TEST(BestPositions, AreAllWhereThereAreNoMoreThanWanted) {
  EXPECT_EQ(best_of(scored({3, 1, 2}), 3), (Positions{0, 1, 2}));
  EXPECT_EQ(best_of(scored({3, 1}), 5), (Positions{0, 1}));
}

TEST(BestPositions, NotANumberIsTheWorst) {
  EXPECT_EQ(best_of(scored({NAN, -5, NAN, 1, -7}), 3), (Positions{1, 3, 4}));
}

TEST(BestPositions, GoOnFromWhatIsKnown) {
  std::vector<ScoredPosition> memory = {{4, 10}, {2, 11}, {}, {}};
  BestPositions best(memory.data(), 2, 2);
  best.offer({3, 5});
  best.offer({4, 4});
  const int32_t count = best.finish();
  EXPECT_EQ(ascending(memory.data(), count), (Positions{4, 10}));
}

}  // namespace
}  // namespace weir::model
