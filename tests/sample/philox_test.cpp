// The known answers that Random123 1.14 ships for philox4x32 with 10 rounds.
#include "sample/philox.h"

#include <gtest/gtest.h>

namespace weir::sample {
namespace {

TEST(Philox, GivesTheKnownAnswersOfRandom123) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformLiesInTheUnitIntervalAndDependsOnEveryBitOfSeedAndPosition) {
  double sum = 0;
  for (uint32_t i = 0; i < 10'000; ++i) {
    const double u = philox_uniform(7, i);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.012);  // Four standard deviations.
  for (int bit = 0; bit < 64; ++bit)
    EXPECT_NE(philox_uniform(uint64_t{1} << bit, 0), philox_uniform(0, 0)) << bit;
  for (int bit = 0; bit < 32; ++bit)
    EXPECT_NE(philox_uniform(0, uint32_t{1} << bit), philox_uniform(0, 0)) << bit;
}

}  // namespace
}  // namespace weir::sample
