// What Lowering calls and what it copies, and that repetitions keep their bounds whichever it does.
#include "grammar/lowering.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "matching.h"

namespace weir::grammar {
namespace {

// A unit of `size` NFA states: that many bytes, the last an 'x'.
std::string unit_of(int32_t size) { return std::string(static_cast<size_t>(size) - 1, '.') + 'x'; }

Grammar repetition(int32_t size, int32_t min, int32_t max) {
  Grammar grammar;
  grammar.root = grammar.add_rule("root");
  const ExprId unit = grammar.literal(unit_of(size));
  grammar.define(grammar.root,
                 grammar.concat({grammar.repeat(unit, min, max), grammar.literal("!")}));
  return grammar;
}

// Every number of units, one after the other: the end is allowed from min to max and nowhere else.
void expect_bounds(int32_t size, int32_t min, int32_t max) {
  const std::string told = std::to_string(size) + " {" + std::to_string(min) + "," +
                           (max == kUnbounded ? "" : std::to_string(max)) + "}";
  const auto automaton = compiled(repetition(size, min, max));
  ASSERT_TRUE(automaton) << told;
  const std::string unit = unit_of(size);
  Matcher matcher(automaton, small_vocabulary());
  MatchScratch scratch;
  const int32_t last = max == kUnbounded ? min + 3000 : max;
  for (int32_t count = 0; count <= last; ++count) {
    Matcher ending = matcher;
    ASSERT_EQ(ending.accept("!", scratch), count >= min) << count << " of " << told;
    ASSERT_EQ(count >= min && ending.must_end(), count >= min) << count << " of " << told;
    ASSERT_EQ(matcher.accept(unit, scratch), count < max) << count << " of " << told;
  }
  matcher.check();
}

// Around the sizes at which a repetition is written out, counted in blocks, or counted one by one:
// 2,048 states, and blocks of 1,024, of fewer than 8 copies not at all.
TEST(Lowering, RepetitionsKeepTheirBoundsAtEveryEdge) {
  for (const auto& [min, max] :
       {std::pair{0, 1},   {1, 1},       {0, 2048},       {2048, 2048},    {0, 2049},
        {2049, 2049},      {1, 2049},    {1023, 3071},    {1024, 3072},    {1025, 3073},
        {1024, 4095},      {1000, 5120}, {2047, 3070},    {2048, 3072},    {2049, 3073},
        {3000, 3001},      {3072, 3072}, {0, kUnbounded}, {1, kUnbounded}, {2049, kUnbounded},
        {3072, kUnbounded}})
    expect_bounds(1, min, max);
  // A block holds 8 copies of 128 states; of 129 it would hold 7, and each is counted.
  for (const int32_t size : {127, 128, 129, 200})
    for (const auto& [min, max] : {std::pair{0, 15},
                                   {0, 16},
                                   {16, 16},
                                   {0, 17},
                                   {7, 17},
                                   {8, 24},
                                   {9, 25},
                                   {17, 17},
                                   {0, 40},
                                   {16, kUnbounded},
                                   {17, kUnbounded}})
      expect_bounds(size, min, max);
}

struct Lowered {
  int32_t machines = 0;
  std::vector<CallTarget> calls;
};

Lowered lowered(Grammar& grammar) {
  Lowering lowering(grammar);
  const auto prepared = lowering.prepare();
  EXPECT_TRUE(prepared.has_value());
  for (int32_t machine = 0; prepared && machine < lowering.machine_count(); ++machine)
    EXPECT_TRUE(lowering.build(machine).has_value());
  return {lowering.machine_count(), lowering.calls()};
}

TEST(Lowering, LongRepetitionsAreCountedAndShortOnesWrittenOut) {
  Grammar short_one = repetition(1, 5, 2048);
  EXPECT_EQ(lowered(short_one).machines, 1);
  Grammar blocks = repetition(1, 2050, 4101);  // 2 blocks and 2, then at most 2 blocks and 3.
  const Lowered in_blocks = lowered(blocks);
  EXPECT_EQ(in_blocks.machines, 2);
  ASSERT_EQ(in_blocks.calls.size(), 2u);
  EXPECT_TRUE(in_blocks.calls[0].min == 2 && in_blocks.calls[0].max == 2);
  EXPECT_TRUE(in_blocks.calls[1].min == 0 && in_blocks.calls[1].max == 1);
  Grammar large = repetition(200, 3, 40);
  const Lowered one_by_one = lowered(large);
  EXPECT_EQ(one_by_one.machines, 2);
  ASSERT_EQ(one_by_one.calls.size(), 2u);
  EXPECT_TRUE(one_by_one.calls[0].min == 3 && one_by_one.calls[0].max == 3);
  EXPECT_TRUE(one_by_one.calls[1].min == 0 && one_by_one.calls[1].max == 37);
}

// A root that uses one rule of `size` states as often as said.
Lowered with_rule(int32_t size, int uses, bool keep, bool recursive) {
  Grammar grammar;
  grammar.root = grammar.add_rule("root");
  const RuleId rule = grammar.add_rule("rule", keep);
  const ExprId unit = grammar.literal(unit_of(size));
  grammar.define(
      rule, recursive ? grammar.any({unit, grammar.concat({unit, grammar.rule(rule)})}) : unit);
  grammar.define(grammar.root, grammar.concat(std::vector<ExprId>(static_cast<size_t>(uses),
                                                                  grammar.rule(rule))));
  return lowered(grammar);
}

TEST(Lowering, RulesAreCopiedIfTheyAreSmallOrUsedOnceAndElseCalled) {
  EXPECT_EQ(with_rule(96, 2, false, false).machines, 1);
  EXPECT_EQ(with_rule(97, 2, false, false).machines, 2);
  EXPECT_EQ(with_rule(97, 2, false, false).calls.size(), 1u) << "two calls of the same";
  EXPECT_EQ(with_rule(5000, 1, false, false).machines, 1);
  EXPECT_EQ(with_rule(1, 2, true, false).machines, 2) << "kept";
  EXPECT_EQ(with_rule(1, 1, false, true).machines, 2) << "recursive";
  EXPECT_FALSE(with_rule(1, 1, false, true).calls[0].counted());
}

TEST(Lowering, MachinesAreNamedByTheirRules) {
  Grammar grammar;
  grammar.root = grammar.add_rule("root");
  const RuleId rule = grammar.add_rule("inner", true);
  grammar.define(rule, grammar.repeat(grammar.literal("a"), 0, 5000));
  grammar.define(grammar.root, grammar.rule(rule));
  Lowering lowering(grammar);
  ASSERT_TRUE(lowering.prepare().has_value());
  for (int32_t machine = 0; machine < lowering.machine_count(); ++machine)
    ASSERT_TRUE(lowering.build(machine).has_value());
  ASSERT_EQ(lowering.machine_count(), 3);
  EXPECT_EQ(lowering.machine_name(0), "root");
  EXPECT_EQ(lowering.machine_name(1), "inner");
  EXPECT_EQ(lowering.machine_name(2), "a repetition");
}

}  // namespace
}  // namespace weir::grammar
