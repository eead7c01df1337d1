// Slots of what sequences attend to besides: shared, kept, and used again.
#include "kv/cross_slots.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace weir::kv {
namespace {

CrossKey key(uint64_t number) { return {number, ~number}; }

TEST(CrossSlots, SharesTheSlotOfTheSame) {
  CrossSlots slots(2);
  const int32_t slot = slots.take(key(1));
  EXPECT_FALSE(slots.filled(slot));
  slots.set_filled(slot);
  EXPECT_EQ(slots.take(key(1)), slot);
  const int32_t other = slots.take(key(2));
  EXPECT_NE(other, slot);
  EXPECT_FALSE(slots.filled(other));
  slots.give_back(slot);
  EXPECT_TRUE(slots.is_held(slot));
  slots.give_back(slot);
  EXPECT_FALSE(slots.is_held(slot));
}

TEST(CrossSlots, KeepsWhatNobodyHoldsAndDropsTheLeastRecentlyUsed) {
  CrossSlots slots(3);
  for (uint64_t i = 1; i <= 3; ++i) {
    const int32_t slot = slots.take(key(i));
    slots.set_filled(slot);
    slots.give_back(slot);
  }
  const int32_t first = slots.take(key(1));
  EXPECT_TRUE(slots.filled(first));
  slots.give_back(first);
  EXPECT_FALSE(slots.filled(slots.take(key(4))));  // In the place of 2.
  EXPECT_TRUE(slots.filled(slots.take(key(3))));
  EXPECT_TRUE(slots.filled(slots.take(key(1))));
}

TEST(CrossSlots, ForgetsWhatNobodyHolds) {
  CrossSlots slots(2);
  const int32_t held = slots.take(key(1)), kept = slots.take(key(2));
  slots.set_filled(held);
  slots.set_filled(kept);
  slots.give_back(kept);
  slots.forget();
  EXPECT_TRUE(slots.filled(held));
  EXPECT_FALSE(slots.filled(slots.take(key(2))));
}

TEST(CrossSlots, KeepsItsBooksWhateverComes) {
  constexpr int32_t kCount = 5;
  CrossSlots slots(kCount);
  std::mt19937 random(20261126);
  std::vector<int32_t> holders(kCount, 0);
  std::vector<int32_t> taken;
  std::map<int32_t, uint64_t> of;  // What a held slot is of.
  for (int step = 0; step < 20000; ++step) {
    const uint64_t number = random() % 9;
    if (taken.size() < kCount && random() % 2 == 0) {
      const int32_t slot = slots.take(key(number));
      if (holders[static_cast<size_t>(slot)]++ > 0) {
        ASSERT_EQ(of[slot], number);
      }
      of[slot] = number;
      taken.push_back(slot);
      if (random() % 2 == 0) slots.set_filled(slot);
    } else if (!taken.empty()) {
      const size_t which = random() % taken.size();
      slots.give_back(taken[which]);
      --holders[static_cast<size_t>(taken[which])];
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(which));
    }
    if (step % 500 == 0) slots.forget();
    slots.check(holders);
  }
}

}  // namespace
}  // namespace weir::kv
