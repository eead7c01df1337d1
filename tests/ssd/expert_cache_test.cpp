// ExpertCache against a model of it that looks at everything each time.
#include "ssd/expert_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace weir::ssd {
namespace {

constexpr int32_t kLayers = 6, kExperts = 20;
const std::vector<int32_t> kClassOfLayer = {0, 1, 0, 0, 1, 0};
const std::vector<int32_t> kSlotsOfClass = {30, 11};

// What the cache should know, kept the slow way: scores decay, nothing is remembered of minima.
struct NaiveCache {
  struct Expert {
    double score = 0;
    int32_t slot = -1;
    int32_t pins = 0;
    bool guarded = false;
  };
  std::map<std::pair<int32_t, int32_t>, Expert> experts;

  Expert& at(ExpertKey key) { return experts[{key.layer, key.expert}]; }
  static double distance_cost(int32_t layer, int32_t layer_now) {
    const int32_t distance = (layer - layer_now - 1 + kLayers) % kLayers + 1;
    return ExpertCache::kDistanceWeight * distance / kLayers;
  }
  // The least worth among what may go; NAN: nothing may.
  double least(int32_t cls, int32_t layer_now, bool guarded) {
    double least = NAN;
    for (const auto& [place, expert] : experts) {
      if (kClassOfLayer[static_cast<size_t>(place.first)] != cls || expert.slot < 0) continue;
      if (expert.pins > 0 || expert.guarded != guarded) continue;
      const double worth = expert.score - distance_cost(place.first, layer_now);
      if (!(worth >= least)) least = worth;
    }
    return least;
  }
};

class RandomWalk {
 public:
  explicit RandomWalk(uint32_t seed)
      : random_(seed), cache_(kLayers, kExperts, kClassOfLayer, kSlotsOfClass) {}

  void run(int32_t operations) {
    for (int32_t i = 0; i < operations && !testing::Test::HasFailure(); ++i) {
      step();
      cache_.check();
      compare();
    }
  }

  int64_t evictions = 0, refused = 0;

 private:
  int32_t pick(int32_t n) { return std::uniform_int_distribution<int32_t>(0, n - 1)(random_); }
  ExpertKey any_key() { return {pick(kLayers), pick(pick(3) == 0 ? kExperts : kExperts / 3)}; }

  void step() {
    const ExpertKey key = any_key();
    NaiveCache::Expert& expert = naive_.at(key);
    switch (pick(12)) {
      case 0:
      case 1: {
        const float weight = ExpertCache::decode_weight(pick(6) + 1);
        cache_.touch(key, weight);
        expert.score += weight;
        break;
      }
      case 2:
        cache_.advance();
        for (auto& [place, other] : naive_.experts) other.score *= ExpertCache::kKept;
        break;
      case 3:
        if (expert.slot >= 0 && pick(3) == 0) cache_.pin(expert.slot), ++expert.pins;
        break;
      case 4:
      case 5:
        unpin_some();
        break;
      case 6:
        if (pick(4) == 0) cache_.protect(key), expert.guarded = true;
        break;
      case 7:
        cache_.layer_done(key.layer);
        for (auto& [place, other] : naive_.experts)
          if (place.first == key.layer) other.guarded = false;
        break;
      case 8:
        if (expert.slot >= 0 && expert.pins == 0 && pick(4) == 0) {
          cache_.discard(expert.slot);
          expert.slot = -1;
        }
        break;
      case 9:
        resize();
        break;
      default:
        if (expert.slot < 0) place(key);
    }
  }

  void unpin_some() {
    for (auto& [place, expert] : naive_.experts)
      if (expert.pins > 0 && pick(2) == 0) cache_.unpin(expert.slot), --expert.pins;
  }

  void resize() {
    const int32_t cls = pick(2);
    const size_t c = static_cast<size_t>(cls);
    if (faulted_[c] < kSlotsOfClass[c]) {
      faulted_[c] += std::min(pick(4), kSlotsOfClass[c] - faulted_[c]);
      cache_.set_usable(cls, faulted_[c]);
    } else if (pick(2) == 0) {
      const double bound = naive_.least(cls, 0, false);
      const bool full = residents(cls) == cache_.usable(cls);
      double worth = NAN;
      for (const int32_t slot : cache_.shrink(cls, 1)) {
        ASSERT_TRUE(shed_.insert(slot).second);
        if (full) worth = forget_resident_of(slot, 0);
      }
      if (full && !std::isnan(bound)) {
        EXPECT_NEAR(worth, bound, 1e-4);
      }
    } else {
      for (const int32_t slot : cache_.grow(cls, pick(3))) ASSERT_EQ(shed_.erase(slot), 1u);
    }
  }

  int32_t residents(int32_t cls) {
    int32_t count = 0;
    for (const auto& [place, expert] : naive_.experts)
      if (kClassOfLayer[static_cast<size_t>(place.first)] == cls && expert.slot >= 0) ++count;
    return count;
  }

  // The expert that had the slot has it no more; what it was worth.
  double forget_resident_of(int32_t slot, int32_t layer_now) {
    for (auto& [place, expert] : naive_.experts) {
      if (expert.slot != slot) continue;
      EXPECT_EQ(expert.pins, 0);
      expert.slot = -1;
      ++evictions;
      return expert.score - NaiveCache::distance_cost(place.first, layer_now);
    }
    return NAN;
  }

  void place(ExpertKey key) {
    const int32_t cls = cache_.class_of(key), layer_now = pick(kLayers), kind = pick(3);
    const bool free = residents(cls) < cache_.usable(cls);
    const double coldest = naive_.least(cls, layer_now, false);
    const double guarded = naive_.least(cls, layer_now, true);
    NaiveCache::Expert& expert = naive_.at(key);
    const float gain = 0.02f * static_cast<float>(pick(40));
    const int32_t slot = kind == 0   ? cache_.place(key, layer_now)
                         : kind == 1 ? cache_.place_prompt(key, layer_now)
                                     : cache_.place_speculative(key, layer_now, gain);
    if (slot < 0) {
      ++refused;
      EXPECT_FALSE(free);
      if (kind == 0) {
        EXPECT_TRUE(std::isnan(coldest) && std::isnan(guarded));
        return;
      }
      const double limit = kind == 1 ? expert.score : cache_.score_max() * gain;
      EXPECT_TRUE(std::isnan(coldest) || coldest + ExpertCache::kDistanceWeight >= limit - 1e-4);
      return;
    }
    EXPECT_FALSE(shed_.contains(slot));
    EXPECT_LT(slot - cache_.class_begin(cls), faulted_[static_cast<size_t>(cls)]);
    if (!free) {
      const double worth = forget_resident_of(slot, layer_now);
      // Protected ones are all the same to it: any of them may go, once nothing else may.
      if (std::isnan(coldest))
        EXPECT_GE(worth, guarded);
      else
        EXPECT_NEAR(worth, coldest, 1e-4 * (1 + std::abs(coldest)));
    }
    expert.slot = slot;
    expert.pins = 1;
    if (kind == 2) expert.guarded = true;
  }

  void compare() {
    int32_t count = 0;
    for (const auto& [place, expert] : naive_.experts) {
      const ExpertKey key{place.first, place.second};
      EXPECT_EQ(cache_.slot_of(key), expert.slot);
      EXPECT_NEAR(cache_.score(key), expert.score, 1e-4 * (1 + expert.score));
      if (expert.slot < 0) continue;
      ++count;
      EXPECT_EQ(cache_.pins(expert.slot), expert.pins);
      EXPECT_EQ(cache_.key_of(expert.slot), key);
    }
    EXPECT_EQ(cache_.residents(), count);
  }

  std::mt19937 random_;
  ExpertCache cache_;
  NaiveCache naive_;
  std::vector<int32_t> faulted_ = {0, 0};
  std::set<int32_t> shed_;
};

TEST(ExpertCache, AgreesWithANaiveModelOnRandomOperations) {
  int64_t evictions = 0, refused = 0;
  for (uint32_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomWalk walk(seed);
    walk.run(3000);
    evictions += walk.evictions;
    refused += walk.refused;
  }
  EXPECT_GT(evictions, 500);
  EXPECT_GT(refused, 100);
}

// One class, all of its slots in use.
struct SmallCache : ExpertCache {
  SmallCache(int32_t layers, int32_t experts, int32_t slots)
      : ExpertCache(layers, experts, std::vector<int32_t>(static_cast<size_t>(layers), 0),
                    std::vector<int32_t>{slots}) {
    set_usable(0, slots);
  }
};

TEST(ExpertCache, ScoresSurviveManyTokensAndStayInUnitsOfDecodeRows) {
  SmallCache cache(1, 4, 2);
  for (int32_t token = 0; token < 20000; ++token) {
    cache.touch({0, 0}, 1);
    if (token % 2 == 0) cache.touch({0, 1}, 1);
    cache.advance();
  }
  // The limits of the two series: kept / (1 - kept), and kept^2 / (1 - kept^2) after an odd token.
  EXPECT_NEAR(cache.score({0, 0}), 19.0f, 0.05f);
  EXPECT_NEAR(cache.score({0, 1}), 0.9025f / 0.0975f, 0.05f);
  EXPECT_EQ(cache.score({0, 2}), 0);
  cache.check();
}

TEST(ExpertCache, AmongEqualsTheLayerThatComesLastGoesFirst) {
  SmallCache cache(4, 8, 4);
  for (int32_t layer = 0; layer < 4; ++layer) cache.unpin(cache.place({layer, 0}, 0));
  cache.place({1, 5}, 1);
  EXPECT_EQ(cache.slot_of({1, 0}), -1) << "layer 1 has just run, its next visit is farthest";
  cache.place({3, 5}, 1);
  EXPECT_EQ(cache.slot_of({0, 0}), -1) << "then comes layer 0, after 2 and 3";
}

TEST(ExpertCache, ARereadIsAnEvictionUndoneWithin64Tokens) {
  SmallCache cache(1, 8, 1);
  cache.unpin(cache.place({0, 0}, 0));
  cache.unpin(cache.place({0, 1}, 0));
  for (int32_t token = 0; token < 64; ++token) cache.advance();
  cache.unpin(cache.place({0, 0}, 0));
  EXPECT_EQ(cache.stats().rereads.value(), 1u);
  for (int32_t token = 0; token < 65; ++token) cache.advance();
  cache.unpin(cache.place({0, 1}, 0));
  EXPECT_EQ(cache.stats().rereads.value(), 1u);
  EXPECT_EQ(cache.stats().evictions.value(), 3u);
}

TEST(ExpertCache, WhatAPromptReadsInPassingEvictsOnlyWhatIsColder) {
  SmallCache cache(1, 64, 8);
  for (int32_t token = 0; token < 20; ++token) {
    for (int32_t expert = 0; expert < 6; ++expert) cache.touch({0, expert}, 1);
    cache.advance();
  }
  for (int32_t expert = 0; expert < 8; ++expert) cache.unpin(cache.place({0, expert}, 0));
  for (int32_t expert = 20; expert < 64; ++expert) {
    cache.touch_prompt({0, expert}, 32, 512);
    const int32_t slot = cache.place_prompt({0, expert}, 0);
    if (slot >= 0) cache.unpin(slot);
  }
  for (int32_t expert = 0; expert < 6; ++expert) EXPECT_GE(cache.slot_of({0, expert}), 0);
  EXPECT_EQ(cache.slot_of({0, 6}), -1) << "never routed to, so colder than a prompt's";
}

}  // namespace
}  // namespace weir::ssd
