#include "kv/disk/write_budget.h"

#include <gtest/gtest.h>

namespace weir::kv::disk {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(WriteBudget, KeepsToItsRate) {
  const WriteBudget::Clock::time_point begin{};
  WriteBudget budget(100, 1'000'000, 0, begin);
  EXPECT_EQ(budget.spend(200, begin), begin + seconds(2));
  EXPECT_EQ(budget.spend(100, begin + seconds(1)), begin + seconds(3)) << "after the one before";
  EXPECT_EQ(budget.spend(100, begin + seconds(9)), begin + seconds(10)) << "nothing is saved up";
}

TEST(WriteBudget, CountsADay) {
  const WriteBudget::Clock::time_point begin{};
  WriteBudget budget(100, 1000, 400, begin);
  EXPECT_TRUE(budget.allows(600, begin));
  EXPECT_FALSE(budget.allows(601, begin));
  budget.spend(500, begin + hours(5));
  EXPECT_FALSE(budget.allows(101, begin + hours(23)));
  EXPECT_TRUE(budget.allows(500, begin + hours(24))) << "what was before is forgotten";
  EXPECT_FALSE(budget.allows(501, begin + hours(28)));
  EXPECT_TRUE(budget.allows(1000, begin + hours(29)));
  EXPECT_TRUE(budget.allows(1000, begin + hours(1000)));
}

}  // namespace
}  // namespace weir::kv::disk
