// Prefetcher: what it learns, what it asks for, and that its books balance.
#include "ssd/prefetcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "base/check.h"
#include "ssd/replay.h"
#include "ssd/streaming_simulation.h"

namespace weir::ssd {
namespace {

constexpr int32_t kLayers = 6, kExperts = 32, kTopK = 2;

// What a test knows of routing: layer l of token t chooses these.
std::vector<int32_t> periodic(int32_t layer, int32_t token) {
  const int32_t first = (5 * layer + 3 * (token % 3)) % kExperts;
  return {first, (first + 1) % kExperts};
}

// All guesses that are worth a read now.
std::vector<Prefetcher::Guess> drain(Prefetcher& prefetcher) {
  std::vector<Prefetcher::Guess> guesses;
  for (Prefetcher::Guess guess; prefetcher.next([](ExpertKey) { return true; }, guess);)
    guesses.push_back(guess);
  return guesses;
}

bool names(const std::vector<Prefetcher::Guess>& guesses, ExpertKey key) {
  return std::ranges::any_of(guesses, [&](const auto& guess) { return guess.key == key; });
}

void run_periodic(Prefetcher& prefetcher, int32_t tokens) {
  for (int32_t token = 0; token < tokens; ++token) {
    prefetcher.begin_step();
    for (int32_t layer = 0; layer < kLayers; ++layer)
      prefetcher.routed(layer, 0, periodic(layer, token));
    prefetcher.step_done(0.03, 0.01, 1);
  }
}

TEST(Prefetcher, LearnsWhatFollowsTwoLayersAheadAndIntoTheNextToken) {
  Prefetcher prefetcher(kLayers, kExperts, kTopK, 1, PrefetchMode::kPreviousToken);
  run_periodic(prefetcher, 300);
  prefetcher.begin_step();
  prefetcher.routed(0, 0, periodic(0, 300));
  const std::vector<Prefetcher::Guess> early = drain(prefetcher);
  for (int32_t layer = 1; layer <= 2; ++layer)
    for (const int32_t expert : periodic(layer, 300))
      EXPECT_TRUE(names(early, {layer, expert})) << layer << " " << expert;
  EXPECT_FALSE(names(early, {3, periodic(3, 300)[0]})) << "three layers ahead is too far";
  for (const auto& guess : early) EXPECT_GT(guess.probability, 0.1f);
  for (int32_t layer = 1; layer < kLayers; ++layer)
    prefetcher.routed(layer, 0, periodic(layer, 300));
  EXPECT_TRUE(names(drain(prefetcher), {0, periodic(0, 301)[0]})) << "behind the last layer";
  const SourceStats& stats = prefetcher.stats(GuessSource::kPreviousToken);
  EXPECT_GT(stats.right.value(), stats.guesses.value() * 9 / 10);
}

TEST(Prefetcher, LearnsOfRowsThatWereRoutedToFewerExpertsOrToNone) {
  Prefetcher prefetcher(kLayers, kExperts, kTopK, 1, PrefetchMode::kPreviousToken);
  // Layer 0 chooses one expert and layer 1 none.
  const auto routed = [](int32_t layer) {
    std::vector<int32_t> experts = periodic(layer, 0);
    experts.resize(layer == 0 ? 1 : layer == 1 ? 0 : kTopK);
    return experts;
  };
  for (int32_t token = 0; token < 300; ++token) {
    prefetcher.begin_step();
    for (int32_t layer = 0; layer < kLayers; ++layer) prefetcher.routed(layer, 0, routed(layer));
    prefetcher.step_done(0.03, 0.01, 1);
  }
  prefetcher.begin_step();
  prefetcher.routed(0, 0, routed(0));
  const std::vector<Prefetcher::Guess> early = drain(prefetcher);
  for (const int32_t expert : routed(2)) EXPECT_TRUE(names(early, {2, expert})) << expert;
  for (const auto& guess : early) EXPECT_NE(guess.key.layer, 1);
}

TEST(Prefetcher, AGuessIsNamedOnceBeforeItsLayerRuns) {
  Prefetcher prefetcher(kLayers, kExperts, kTopK, 1, PrefetchMode::kPreviousToken);
  run_periodic(prefetcher, 300);
  prefetcher.begin_step();
  std::set<std::pair<int32_t, int32_t>> seen;
  for (int32_t layer = 0; layer < kLayers - 2; ++layer) {
    prefetcher.routed(layer, 0, periodic(layer, 300));
    for (const auto& guess : drain(prefetcher))
      EXPECT_TRUE(seen.insert({guess.key.layer, guess.key.expert}).second);
  }
}

TEST(Prefetcher, ABusyDiskAsksForBetterGuesses) {
  for (const bool busy : {false, true}) {
    Prefetcher prefetcher(kLayers, kExperts, kTopK, 1, PrefetchMode::kAuto);
    for (int32_t i = 0; i < 64; ++i) prefetcher.disk_busy(busy);
    EXPECT_EQ(prefetcher.busy_share(), busy ? 1 : 0);
    prefetcher.begin_step();
    prefetcher.routed(0, 0, periodic(0, 0));
    prefetcher.looked_ahead(1, 0, std::vector<int32_t>{4, 9, 11, 2});
    for (const auto& guess : drain(prefetcher)) {
      if (busy) {
        EXPECT_GE(guess.probability, 0.5f);
      }
      EXPECT_EQ(guess.key.layer, 1);
      EXPECT_EQ(guess.source, GuessSource::kLookahead);
    }
  }
}

// Half of what the last token chose comes again: not worth a read on a busy disk, unless told so.
TEST(Prefetcher, AModeAskedForByNameReadsWhateverTheDiskDoes) {
  for (const PrefetchMode mode : {PrefetchMode::kAuto, PrefetchMode::kPreviousToken}) {
    Prefetcher prefetcher(kLayers, kExperts, kTopK, 1, mode);
    std::mt19937 random(5);
    size_t guesses = 0;
    for (int32_t token = 0; token < 200; ++token) {
      prefetcher.begin_step();
      for (int32_t layer = 0; layer < kLayers; ++layer) {
        prefetcher.disk_busy(true);
        const auto changing = static_cast<int32_t>(2 + random() % (kExperts - 2));
        prefetcher.routed(layer, 0, std::vector<int32_t>{layer % 2, changing});
        if (token > 150) guesses += drain(prefetcher).size();
      }
      prefetcher.step_done(0.03, 0.01, 1);
    }
    EXPECT_GT(guesses, 0u);
    if (mode == PrefetchMode::kPreviousToken) {
      EXPECT_GT(guesses, 50u * kLayers);
    }
  }
}

TEST(Prefetcher, TheNextRouterContradictsWhatWasGuessedBefore) {
  Prefetcher prefetcher(kLayers, kExperts, kTopK, 1, PrefetchMode::kAuto);
  run_periodic(prefetcher, 300);
  for (int32_t i = 0; i < 64; ++i) prefetcher.disk_busy(true);
  prefetcher.begin_step();
  prefetcher.routed(0, 0, periodic(0, 300));
  Prefetcher::Guess guess;
  const std::vector<int32_t> expected = periodic(1, 300);
  std::vector<ExpertKey> issued;
  while (prefetcher.next([](ExpertKey key) { return key.layer == 1; }, guess)) {
    prefetcher.issued(guess, 1000);
    issued.push_back(guess.key);
  }
  ASSERT_TRUE(std::ranges::find(issued, ExpertKey{1, expected[0]}) != issued.end());
  EXPECT_TRUE(prefetcher.contradicted().empty());
  prefetcher.looked_ahead(1, 0, std::vector<int32_t>{expected[0], 30});
  const std::span<const ExpertKey> given_up = prefetcher.contradicted();
  EXPECT_TRUE(std::ranges::find(given_up, ExpertKey{1, expected[1]}) != given_up.end());
  EXPECT_TRUE(std::ranges::find(given_up, ExpertKey{1, expected[0]}) == given_up.end());
  EXPECT_TRUE(prefetcher.contradicted().empty()) << "each is named once";
}

TEST(Prefetcher, AForgottenSequenceStartsWithNothing) {
  Prefetcher prefetcher(kLayers, kExperts, kTopK, 2, PrefetchMode::kPreviousToken);
  run_periodic(prefetcher, 2);
  prefetcher.forget(0);
  prefetcher.begin_step();
  const uint64_t before = prefetcher.stats(GuessSource::kPreviousToken).guesses.value();
  prefetcher.routed(0, 0, periodic(0, 2));
  EXPECT_EQ(prefetcher.stats(GuessSource::kPreviousToken).guesses.value(), before);
  EXPECT_TRUE(prefetcher.likely().empty());
}

// The store says what is absent before it says what was routed.
TEST(Prefetcher, CountsTheMissesOfEveryLayer) {
  Prefetcher prefetcher(kLayers, kExperts, kTopK, 1, PrefetchMode::kPreviousToken);
  run_periodic(prefetcher, 300);
  const SourceStats& stats = prefetcher.stats(GuessSource::kPreviousToken);
  for (int32_t token = 300; token < 306; ++token) {
    prefetcher.begin_step();
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      for (const int32_t expert : periodic(layer, token)) prefetcher.missed({layer, expert});
      prefetcher.routed(layer, 0, periodic(layer, token));
    }
    prefetcher.step_done(0.03, 0.01, 1);
  }
  prefetcher.begin_step();
  // A layer's guesses at distance 1 are settled in one of four steps.
  EXPECT_GE(stats.misses.value(), 6u * kLayers * kTopK / 4 - 2 * kTopK);
  EXPECT_GE(stats.foreseen.value(), stats.misses.value() * 9 / 10);
}

TEST(Prefetcher, OffSaysNothing) {
  Prefetcher prefetcher(kLayers, kExperts, kTopK, 1, PrefetchMode::kOff);
  run_periodic(prefetcher, 50);
  EXPECT_FALSE(prefetcher.wants_lookahead());
  EXPECT_TRUE(drain(prefetcher).empty());
}

// Random events around random routing: every issued byte has one fate.
TEST(Prefetcher, TheBooksBalanceWhateverHappens) {
  std::mt19937 random(3);
  const auto pick = [&](int32_t n) {
    return std::uniform_int_distribution<int32_t>(0, n - 1)(random);
  };
  const auto choose = [&](int32_t count) {
    std::set<int32_t> chosen;
    while (static_cast<int32_t>(chosen.size()) < count) chosen.insert(pick(kExperts / 2));
    return std::vector<int32_t>(chosen.begin(), chosen.end());
  };
  Prefetcher prefetcher(kLayers, kExperts, kTopK, 3, PrefetchMode::kAuto);
  std::vector<std::pair<ExpertKey, int64_t>> open;
  std::array<int64_t, kGuessSources> expected{};
  for (int32_t step = 0; step < 400; ++step) {
    prefetcher.begin_step();
    if (pick(20) == 0) prefetcher.forget(pick(3));
    const int32_t rows = 1 + pick(3);
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      for (int32_t row = 0; row < rows; ++row) prefetcher.routed(layer, row, choose(kTopK));
      if (prefetcher.wants_lookahead() && layer + 1 < kLayers)
        for (int32_t row = 0; row < rows; ++row)
          prefetcher.looked_ahead(layer + 1, row, choose(2 * kTopK));
      Prefetcher::Guess guess;
      for (int32_t i = pick(4); i > 0; --i) {
        const auto absent = [&](ExpertKey key) { return !prefetcher.outstanding(key); };
        if (!prefetcher.next(absent, guess)) break;
        const int64_t bytes = 1000 + pick(1000);
        prefetcher.issued(guess, bytes);
        expected[static_cast<size_t>(guess.source)] += bytes;
        open.push_back({guess.key, bytes});
      }
      for (const ExpertKey key : prefetcher.contradicted())
        EXPECT_TRUE(prefetcher.outstanding(key));
      prefetcher.missed({layer, pick(kExperts)});
      prefetcher.disk_busy(pick(2) == 0);
      for (int32_t i = pick(4); i > 0 && !open.empty(); --i) {
        std::swap(open[static_cast<size_t>(pick(static_cast<int32_t>(open.size())))], open.back());
        const auto [key, bytes] = open.back();
        open.pop_back();
        const int32_t fate = pick(3);
        if (fate == 0) prefetcher.used(key, bytes, pick(2) == 0);
        if (fate == 1) prefetcher.wasted(key, bytes);
        if (fate == 2) prefetcher.dropped(key);
      }
    }
    prefetcher.step_done(0.03, 0.01, rows);
  }
  int64_t outstanding = 0;
  for (const auto& [key, bytes] : open) outstanding += bytes;
  for (size_t source = 0; source < kGuessSources; ++source) {
    const SourceStats& s = prefetcher.stats(static_cast<GuessSource>(source));
    EXPECT_EQ(static_cast<int64_t>(s.issued_bytes.value()), expected[source]);
    outstanding -= static_cast<int64_t>(s.issued_bytes.value() - s.used_bytes.value() -
                                        s.wasted_bytes.value() - s.dropped_bytes.value());
    EXPECT_LE(s.late_bytes.value(), s.used_bytes.value());
    EXPECT_LE(s.right.value(), s.guesses.value());
    EXPECT_LE(s.foreseen.value(), s.misses.value());
    EXPECT_GT(s.issued_bytes.value(), 0u);
  }
  EXPECT_EQ(outstanding, 0);
}

}  // namespace
}  // namespace weir::ssd
