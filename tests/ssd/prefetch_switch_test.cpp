// PrefetchSwitch on machines where speculation is known to help, to harm or to do neither.
#include "ssd/prefetch_switch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace weir::ssd {
namespace {

struct Course {
  double seconds = 0;  // Of all steps.
  int32_t steps_on = 0;
};

// Steps of 30 ms with the source off and `factor` as much with it on, with noise of a fifth and a
// pace that drifts.
Course run(PrefetchSwitch& source, double factor, int32_t steps, float busy, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> noise(1, 0.2);
  Course course;
  for (int32_t step = 0; step < steps; ++step) {
    const double drift = 1 + 0.3 * std::sin(step / 200.0);
    const double seconds = 0.03 * drift * (source.on() ? factor : 1) * std::max(0.2, noise(random));
    course.seconds += seconds;
    course.steps_on += source.on() ? 1 : 0;
    source.step(seconds, 1, busy, true);
  }
  return course;
}

TEST(PrefetchSwitch, WhatHarmsIsOffSoonAndTriedRarely) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    PrefetchSwitch source;
    run(source, 1.5, 1000, 0.9f, seed);
    EXPECT_FALSE(source.on()) << seed;
    EXPECT_LT(run(source, 1.5, 4000, 0.9f, seed).steps_on, 4000 / 50) << seed;
  }
}

TEST(PrefetchSwitch, WhatHelpsStaysOn) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    PrefetchSwitch source;
    EXPECT_GT(run(source, 0.8, 4000, 0.9f, seed).steps_on, 4000 * 95 / 100) << seed;
  }
}

TEST(PrefetchSwitch, WhatBeginsToHelpComesOnAgain) {
  int32_t back = 0;
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    PrefetchSwitch source;
    run(source, 1.5, 1000, 0.9f, seed);
    run(source, 0.6, 6000, 0.9f, seed);
    back += source.on() ? 1 : 0;
  }
  EXPECT_GE(back, 9);
}

TEST(PrefetchSwitch, AnIdleDiskAndGoodGuessesNeedNoTrial) {
  PrefetchSwitch source;
  for (int32_t i = 0; i < 100; ++i) source.settle(i % 10 != 0);
  EXPECT_EQ(run(source, 0.9, 2000, 0.2f, 1).steps_on, 2000);
}

TEST(PrefetchSwitch, ReadsInVainSwitchItOffWithoutAClock) {
  PrefetchSwitch source;
  for (int32_t i = 0; i < 100; ++i) source.settle(i % 3 == 0);
  run(source, 1, 3, 0.2f, 1);
  EXPECT_TRUE(source.on()) << "an idle disk does not mind";
  run(source, 1, 3, 0.9f, 1);
  EXPECT_FALSE(source.on());
}

}  // namespace
}  // namespace weir::ssd
