// Memory that goes back to the kernel between steps, and without any.
#include <gtest/gtest.h>

#include "ssd/small_store.h"

namespace weir::ssd {
namespace {

TEST(Shed, GoesBackWithoutAStepAndComesAgain) {
  auto disk = Disk::create({.uring = false});
  ASSERT_TRUE(disk);
  SmallStore small(std::move(*disk), 20);
  ExpertStore& store = small.store();
  for (int32_t i = 0; i < 8; i += 2) EXPECT_EQ(small.step({{i, i + 1}}), "");
  const double residents = store.cache().residents.value();
  EXPECT_EQ(residents, 20);
  const uint64_t steps = store.stats().steps.value();
  store.allow(50);
  EXPECT_EQ(store.stats().slots_shed.value(), 0) << "the leader's business";
  store.adjust_memory();
  EXPECT_EQ(store.stats().slots_shed.value(), 10);
  EXPECT_EQ(store.stats().slots_usable.value(), 10);
  EXPECT_EQ(store.cache().residents.value(), 10);
  store.allow(75);
  store.adjust_memory();
  EXPECT_EQ(store.stats().slots_shed.value(), 5);
  EXPECT_EQ(store.stats().steps.value(), steps);
  for (int32_t i = 0; i < 8; i += 2) EXPECT_EQ(small.step({{i, i + 1}}), "");
}

}  // namespace
}  // namespace weir::ssd
