#include "sched/feature_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sched/fake_encoder.h"

namespace weir::sched {
namespace {

using Entry = FeatureCache::Entry;

// Pictures of 10 rows of 4 numbers: 160 bytes each.
class Cache : public testing::Test {
 protected:
  Cache() {
    for (int32_t i = 0; i < 5; ++i) pictures_.push_back(made_up_picture(i, 2, 5, false));
  }
  ~Cache() override { cache_.check(); }

  bool pin(const std::vector<int32_t>& numbers) {
    std::vector<const Medium*> wanted;
    for (const int32_t i : numbers) wanted.push_back(&pictures_[static_cast<size_t>(i)]);
    found_.assign(numbers.size(), nullptr);
    const bool pinned = cache_.pin(wanted, found_);
    hits_ = pinned ? std::ranges::count(found_, Entry::State::kReady, &Entry::state) : 0;
    return pinned;
  }
  // All that wait are encoded.
  void encode() {
    std::vector<Entry*> entries(8);
    entries.resize(cache_.waiting(entries));
    for (Entry* entry : entries) {
      entry->state = Entry::State::kReady;
      entry->input.reset();
    }
  }
  bool has(int32_t number) { return cache_.find(pictures_[static_cast<size_t>(number)].hash); }

  std::vector<Medium> pictures_;
  FeatureCache cache_{500, 4};
  std::vector<Entry*> found_;
  int64_t hits_ = 0;  // Were ready.
};

TEST_F(Cache, KeepsWhatIsNotNeededWhileThereIsRoom) {
  for (const int32_t i : {0, 1, 2}) {
    ASSERT_TRUE(pin({i}));
    EXPECT_EQ(hits_, 0);
    encode();
    cache_.unpin(found_[0]);
  }
  EXPECT_EQ(cache_.bytes(), 480);
  ASSERT_TRUE(pin({0}));  // It is used again: so 1 is the least recently used.
  EXPECT_EQ(hits_, 1);
  cache_.unpin(found_[0]);
  ASSERT_TRUE(pin({3}));
  EXPECT_TRUE(has(0) && !has(1) && has(2) && has(3));
}

TEST_F(Cache, NothingThatIsPinnedGoes) {
  ASSERT_TRUE(pin({0, 1}));
  const std::vector<Entry*> pinned = found_;
  encode();
  EXPECT_FALSE(pin({1, 2, 3}));
  EXPECT_EQ(pinned[1]->pins, 1);  // As if nothing had been asked.
  EXPECT_FALSE(has(2));
  ASSERT_TRUE(pin({2}));
  EXPECT_FALSE(pin({3}));
  cache_.unpin(pinned[0]);
  EXPECT_TRUE(pin({3}));
  EXPECT_FALSE(has(0));
}

TEST_F(Cache, APictureOfTwoIsThereOnce) {
  ASSERT_TRUE(pin({0, 1, 0}));
  EXPECT_EQ(found_[0], found_[2]);
  EXPECT_EQ(found_[0]->pins, 2);
  EXPECT_EQ(cache_.bytes(), 320);
}

TEST_F(Cache, WhatNobodyWaitsForIsNotEncoded) {
  ASSERT_TRUE(pin({0}));
  Entry* const first = found_[0];
  ASSERT_TRUE(pin({1, 0}));
  std::vector<Entry*> waiting(4);
  EXPECT_EQ(cache_.waiting(waiting), 2u);
  EXPECT_EQ(waiting[0], first);
  cache_.unpin(found_[0]);
  EXPECT_FALSE(has(1));
  cache_.unpin(first);
  EXPECT_EQ(cache_.waiting(waiting), 1u);
  found_[1]->state = Entry::State::kEncoding;  // What has begun is finished.
  cache_.unpin(first);
  EXPECT_TRUE(has(0));
}

}  // namespace
}  // namespace weir::sched
