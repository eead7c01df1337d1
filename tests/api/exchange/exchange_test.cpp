#include "api/exchange/exchange.h"

#include <gtest/gtest.h>

#include <set>

namespace weir::api {
namespace {

TEST(RandomIds, AreDigitsAfterTheirPrefixAndNeverTwiceTheSame) {
  std::set<std::string> seen;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = random_id("req_");
    EXPECT_EQ(id.size(), 4u + 32u);
    EXPECT_EQ(id.substr(4).find_first_not_of("0123456789abcdef"), std::string::npos) << id;
    EXPECT_TRUE(seen.insert(id).second) << id;
  }
}

// SplitMix64's outputs give its state away, and so all later ids: `x ^= x >> shift`, undone.
uint64_t undo_shift(uint64_t z, int shift) {
  uint64_t x = z;
  for (int done = shift; done < 64; done += shift) x = z ^ (x >> shift);
  return x;
}

uint64_t inverse_of(uint64_t odd) {
  uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

uint64_t next_of_splitmix(uint64_t output) {
  uint64_t z = undo_shift(output, 31) * inverse_of(0x94d049bb133111eb);
  z = undo_shift(z, 27) * inverse_of(0xbf58476d1ce4e5b9);
  z = undo_shift(z, 30) + 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

TEST(RandomIds, TellNothingOfTheNext) {
  for (int i = 0; i < 1'000; ++i) {
    const uint64_t seen = random_bits();
    ASSERT_NE(random_bits(), next_of_splitmix(seen));
  }
}

}  // namespace
}  // namespace weir::api
