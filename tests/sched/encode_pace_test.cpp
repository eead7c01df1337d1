#include "sched/encode_pace.h"

#include <gtest/gtest.h>

namespace weir::sched {
namespace {

// An encoder whose parts have `part` multiply-adds each, and are computed at some rates by turns.
struct Machine {
  int64_t part = 0;
  double rates[2] = {};
  int64_t parts = 0;

  // The seconds of a unit that has `work`; it becomes what was computed.
  double unit(int64_t& work) {
    int64_t computed = 0;
    double seconds = 0;
    while (computed < work) {
      // A stretch of some parts goes at one rate.
      seconds += static_cast<double>(part) / rates[parts++ / 40 % 2];
      computed += part;
    }
    work = computed;
    return seconds;
  }
};

// As Pictures::advance() has it.
double encode(EncodePace& pace, Machine& machine, double given) {
  double taken = 0;
  for (int64_t work = pace.next_unit(given, given); work > 0;
       work = pace.next_unit(given, given - taken)) {
    const double seconds = machine.unit(work);
    pace.learn(work, seconds);
    taken += seconds;
  }
  return taken;
}

TEST(EncodePace, KeepsToItsTimeButForAPartWhateverTheRate) {
  for (const double rate : {1e9, 1e11, 1e13}) {
    EncodePace pace;
    Machine machine = {.part = 1'000'000, .rates = {rate, rate}};
    const double part = 1e6 / rate;
    encode(pace, machine, 0);  // The first unit is the smallest, for nothing is known.
    EXPECT_EQ(machine.parts, 1);
    for (const double given : {8 * part, 50 * part, 1000 * part}) {
      const double taken = encode(pace, machine, given);
      EXPECT_LE(taken, given + 1.01 * part);
      EXPECT_GE(taken, given * 0.85 - part);
    }
  }
}

TEST(EncodePace, BearsPartsThatTakeLongerForTheirWork) {
  EncodePace pace;
  Machine machine = {.part = 1'000'000, .rates = {4e9, 1e9}};
  encode(pace, machine, 0);
  for (int turn = 0; turn < 100; ++turn) EXPECT_LE(encode(pace, machine, 0.05), 2 * 0.05);
}

TEST(EncodePace, GivesPicturesHalfOfTheTimeAndALimitWhatItLeaves) {
  EXPECT_EQ(EncodePace::seconds_beside(0.02, 0), 0.02);
  EXPECT_EQ(EncodePace::seconds_beside(0.02, 1), 0.02);
  EXPECT_EQ(EncodePace::seconds_beside(0.02, 0.03), 0.03 - 0.02);
  EXPECT_EQ(EncodePace::seconds_beside(0.04, 0.04), 0.01);
  EXPECT_EQ(EncodePace::seconds_alone(0.01), 0.01);
  EXPECT_GT(EncodePace::seconds_alone(0), 0.02);
}

}  // namespace
}  // namespace weir::sched
