// Which prompts may share pages where rope depends on the length.
#include "sched/length_class.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace weir::sched {
namespace {

model::ModelSpec spec_of(std::vector<std::pair<model::Rope::Scaling, float>> ropes) {
  model::ModelSpec spec;
  for (const auto& [scaling, original] : ropes) {
    model::Attention attention;
    attention.rope.scaling = scaling;
    attention.rope.original_context = original;
    if (scaling == model::Rope::kLongRope) attention.rope.long_factor = {2};
    spec.sublayers.push_back({.op = attention});
  }
  return spec;
}

TEST(LengthClass, IsOneForModelsWhoseRopeDoesNotDependOnTheLength) {
  const LengthClass classes(spec_of({{model::Rope::kYarn, 100}, {model::Rope::kLlama3, 50}}));
  EXPECT_EQ(classes.of(1), classes.of(100000));
}

TEST(LengthClass, IsOneWhereShortAndLongFactorsAreTheSame) {
  model::ModelSpec spec = spec_of({{model::Rope::kLongRope, 50}});
  std::get<model::Attention>(spec.sublayers[0].op).rope.short_factor = {2};
  const LengthClass classes(spec);
  EXPECT_EQ(classes.of(1), classes.of(100000));
}

TEST(LengthClass, OfDynamicRopeIsTheLengthBeyondTheOriginalContext) {
  const LengthClass classes(spec_of({{model::Rope::kNone, 10}, {model::Rope::kDynamic, 100}}));
  EXPECT_EQ(classes.of(1), classes.of(100));
  EXPECT_NE(classes.of(100), classes.of(101));
  EXPECT_NE(classes.of(101), classes.of(102));
}

TEST(LengthClass, OfLongRopeSaysOnWhichSideOfEachOriginalContextThePromptIs) {
  const LengthClass classes(spec_of({{model::Rope::kLongRope, 100}, {model::Rope::kLongRope, 50}}));
  EXPECT_EQ(classes.of(1), classes.of(50));
  EXPECT_EQ(classes.of(51), classes.of(100));
  EXPECT_EQ(classes.of(101), classes.of(5000));
  EXPECT_NE(classes.of(50), classes.of(51));
  EXPECT_NE(classes.of(100), classes.of(101));
}

// The property itself: prompts of one class see the same length at every position, for rope that
// depends on that length beyond the original context.
TEST(LengthClass, PromptsOfOneClassHaveTheSameFrequenciesEverywhere) {
  const LengthClass dynamic(spec_of({{model::Rope::kDynamic, 40}}));
  const LengthClass longrope(spec_of({{model::Rope::kLongRope, 40}}));
  for (int32_t a = 1; a < 90; ++a) {
    for (int32_t b = a; b < 90; ++b) {
      bool same_length = true, same_side = true;
      for (int32_t p = 0; p < 120; ++p) {
        const int32_t length_a = std::max(a, p + 1), length_b = std::max(b, p + 1);
        same_length = same_length && std::max(length_a, 40) == std::max(length_b, 40);
        same_side = same_side && (length_a > 40) == (length_b > 40);
      }
      EXPECT_EQ(dynamic.of(a) == dynamic.of(b), same_length) << a << " " << b;
      EXPECT_EQ(longrope.of(a) == longrope.of(b), same_side) << a << " " << b;
    }
  }
}

}  // namespace
}  // namespace weir::sched
