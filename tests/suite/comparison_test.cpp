#include "suite/comparison.h"

#include <gtest/gtest.h>

namespace weir::suite {
namespace {

Figure speed(double value) {
  return {.part = "speed",
          .name = "decode",
          .value = value,
          .unit = "tokens/s",
          .better = Better::kMore,
          .tolerance = 0.1};
}
Figure time_of(double value) {
  return {.part = "speed",
          .name = "first token",
          .value = value,
          .unit = "ms",
          .better = Better::kLess,
          .tolerance = 0.5};
}
Figure hash(const char* text) {
  return {.part = "bits", .name = "hash", .text = text, .better = Better::kSame};
}

std::vector<Regression> compare(std::vector<Figure> now, std::vector<Figure> old) {
  const Report report = {.parts = {{"speed", 1, 0}, {"bits", 1, 0}}, .figures = std::move(now)};
  return find_regressions(report, {.figures = std::move(old)});
}

TEST(Comparisons, NameASlowerBuild) {
  const std::vector<Regression> found = compare({speed(80)}, {speed(100)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].part, "speed");
  EXPECT_EQ(found[0].name, "decode");
  EXPECT_EQ(found[0].what, "80 tokens/s, was 100: 20 % worse, 10 % is allowed");
}

TEST(Comparisons, SayWhereOthersHadTheMachine) {
  const Report now = {.parts = {{"speed", 1, 0.6}}, .figures = {speed(80)}};
  const std::vector<Regression> found = find_regressions(now, {.figures = {speed(100)}});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].what.ends_with(" (other programs took 60 % of the cores meanwhile)"))
      << found[0].what;
}

TEST(Comparisons, BearNoiseWithinTheTolerance) {
  EXPECT_TRUE(compare({speed(91)}, {speed(100)}).empty());
  EXPECT_TRUE(compare({speed(500)}, {speed(100)}).empty());
  EXPECT_TRUE(compare({time_of(149)}, {time_of(100)}).empty());
  EXPECT_EQ(compare({time_of(151)}, {time_of(100)}).size(), 1u);
  EXPECT_TRUE(compare({time_of(1)}, {time_of(100)}).empty());
}

TEST(Comparisons, FromNothingEveryRiseIsTooMuch) {
  EXPECT_EQ(compare({time_of(1)}, {time_of(0)}).size(), 1u);
  EXPECT_TRUE(compare({time_of(0)}, {time_of(0)}).empty());
  EXPECT_TRUE(compare({speed(1)}, {speed(0)}).empty());
}

TEST(Comparisons, NameAChangedBit) {
  const std::vector<Regression> found = compare({hash("00ff")}, {hash("00fe")});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].what, "00ff, was 00fe: they should be equal");
  EXPECT_TRUE(compare({hash("00ff")}, {hash("00ff")}).empty());
}

TEST(Comparisons, NameWhatIsNotMeasuredAnyMore) {
  EXPECT_EQ(compare({}, {speed(100)}).size(), 1u);
  EXPECT_EQ(compare({{.part = "speed", .name = "decode", .skipped = "no"}}, {speed(100)}).size(),
            1u);
  EXPECT_EQ(compare({{.part = "speed", .name = "decode", .failure = "no"}}, {speed(100)}).size(),
            1u);
}

TEST(Comparisons, LeaveAloneWhatWasNotMeasuredOrDidNotRun) {
  EXPECT_TRUE(compare({speed(1)}, {}).empty());
  Figure other = speed(100);
  other.part = "memory";
  EXPECT_TRUE(compare({}, {other}).empty());
  Figure skipped = speed(0);
  skipped.skipped = "no";
  EXPECT_TRUE(compare({speed(1)}, {skipped}).empty());
  Figure plain = speed(100);
  plain.better = Better::kNeither;
  EXPECT_TRUE(compare({}, {plain}).empty());
}

TEST(Comparisons, AreOfTheSameModelMachineAndKind) {
  const Setting now = {.model = "a",
                       .processor = "p",
                       .isa = "amx",
                       .compute = "fast",
                       .kv = "f16",
                       .threads = 2,
                       .quick = true};
  EXPECT_TRUE(check_comparable(now, now));
  Setting old = now;
  old.commit = "another";
  EXPECT_TRUE(check_comparable(now, old)) << "builds are what is compared";
  old = now;
  old.model = "b";
  const Result<void> other = check_comparable(now, old);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message,
            "--against: expected a report of the same model, 'a'; found one of 'b'");
  for (std::string Setting::*field :
       {&Setting::processor, &Setting::isa, &Setting::compute, &Setting::kv, &Setting::url}) {
    old = now;
    old.*field = "other";
    EXPECT_FALSE(check_comparable(now, old));
  }
  old = now;
  old.threads = 4;
  EXPECT_FALSE(check_comparable(now, old));
  old = now;
  old.quick = false;
  EXPECT_FALSE(check_comparable(now, old));
}

}  // namespace
}  // namespace weir::suite
