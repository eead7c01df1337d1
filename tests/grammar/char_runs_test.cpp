// Runs of characters beside their definition: all texts of a class, one character after the other.
#include "grammar/char_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "grammar/dfa.h"
#include "grammar/machine.h"

namespace weir::grammar {
namespace {

constexpr CharClass kAsciiClasses[] = {CharClass::kWord, CharClass::kLetter, CharClass::kLower};

CharRun run_of(const std::vector<CharRuns>& runs, int32_t state, CharClass which) {
  return runs[static_cast<size_t>(state)][static_cast<size_t>(which)];
}

// Reads all texts of an ASCII class at once; stops where one of them cannot go on.
struct Reading {
  int length = 0;  // kEndlessRun: for ever.
  bool to_end = false;
};
Reading read_all(const Dfa& dfa, int32_t from, CharClass which) {
  std::set<int32_t> states{from};
  std::set<std::set<int32_t>> seen;
  for (int length = 0;; ++length) {
    if (!seen.insert(states).second) return {kEndlessRun, false};
    std::set<int32_t> next;
    for (const int32_t state : states)
      for (uint8_t c = 0; c < 0x80; ++c)
        if (in_class(which, c)) next.insert(dfa.next(state, c));
    if (next.contains(-1)) {
      const bool all_final = std::ranges::all_of(
          states, [&](int32_t s) { return dfa.states[static_cast<size_t>(s)].final; });
      return {length, all_final};
    }
    states = next;
  }
}

// Most states take all of a class: else no run would be longer than one.
Dfa random_dfa(std::mt19937& random) {
  const auto pick = [&](size_t count) { return static_cast<size_t>(random() % count); };
  Dfa dfa;
  const size_t states = 2 + pick(8);
  for (size_t i = 0; i < states; ++i) {
    Dfa::State state{.ranges_begin = static_cast<int32_t>(dfa.ranges.size()),
                     .final = pick(2) == 0};
    // Later states more often: so that many runs end.
    const auto target = [&] { return static_cast<int32_t>(std::min(states - 1, i + pick(3))); };
    const auto add = [&](char first, char last) {
      if (pick(12) == 0) return;
      dfa.ranges.push_back({static_cast<uint8_t>(first), static_cast<uint8_t>(last), target()});
    };
    if (pick(4) != 0) {
      add('0', '9');
      add('A', 'Z');
      add('_', '_');
      add('a', 'm');
      add('n', 'z');
    }
    state.ranges_end = static_cast<int32_t>(dfa.ranges.size());
    dfa.states.push_back(state);
  }
  return dfa;
}

TEST(CharRuns, AreAsLongAsEveryTextOfTheClassCanBeRead) {
  std::mt19937 random(1);
  int long_ones = 0, ends = 0, endless = 0;
  for (int round = 0; round < 2000; ++round) {
    const Dfa dfa = random_dfa(random);
    const std::vector<CharRuns> runs = char_runs(dfa, {});
    for (int32_t state = 0; state < static_cast<int32_t>(dfa.states.size()); ++state)
      for (const CharClass which : kAsciiClasses) {
        const CharRun run = run_of(runs, state, which);
        const Reading expected = read_all(dfa, state, which);
        ASSERT_EQ(run.length, expected.length) << "round " << round << ", state " << state;
        // It may be said of fewer than it holds for: of paths of different lengths it is not.
        ASSERT_TRUE(!run.to_end || expected.to_end) << "round " << round << ", state " << state;
        long_ones += run.length > 2 && run.length != kEndlessRun;
        ends += run.to_end && run.length > 0;
        endless += run.length == kEndlessRun;
      }
  }
  EXPECT_GT(long_ones, 300);
  EXPECT_GT(ends, 300);
  EXPECT_GT(endless, 300);
}

Dfa machine(ExprId (*make)(Grammar&)) {
  Grammar grammar;
  auto dfa = machine_of(grammar, make(grammar));
  EXPECT_TRUE(dfa.has_value());
  return std::move(*dfa);
}

// All of kText: quotes, backslashes, control characters and the two line separators are not in it.
CharSet text_characters() {
  return CharSet{{0x20, 0x21}, {0x23, 0x5b}, {0x5d, 0x2027}, {0x202a, 0x10ffff}};
}

TEST(CharRuns, OfTextNeedEveryCharacterAboveAsciiToo) {
  const Dfa five =
      machine([](Grammar& g) { return g.repeat(g.characters(text_characters()), 0, 5); });
  const std::vector<CharRuns> runs = char_runs(five, {});
  EXPECT_EQ(run_of(runs, 0, CharClass::kText).length, 5);
  EXPECT_TRUE(run_of(runs, 0, CharClass::kText).to_end);
  const Dfa any =
      machine([](Grammar& g) { return g.repeat(g.characters(text_characters()), 0, kUnbounded); });
  EXPECT_EQ(run_of(char_runs(any, {}), 0, CharClass::kText).length, kEndlessRun);
  for (const char32_t missing : {char32_t{' '}, char32_t{'~'}, char32_t{0x7f}, char32_t{0x80},
                                 char32_t{0x7ff}, char32_t{0x2027}, char32_t{0x202a},
                                 char32_t{0xd7ff}, char32_t{0xe000}, char32_t{0x10ffff}}) {
    Grammar grammar;
    const CharSet set = text_characters().minus(CharSet{{missing, missing}});
    const auto dfa = machine_of(grammar, grammar.repeat(grammar.characters(set), 0, 5));
    ASSERT_TRUE(dfa.has_value());
    EXPECT_EQ(run_of(char_runs(*dfa, {}), 0, CharClass::kText).length, 0)
        << std::hex << static_cast<uint32_t>(missing);
    EXPECT_EQ(run_of(char_runs(*dfa, {}), 0, CharClass::kWord).length, 5);
  }
}

TEST(CharRuns, LongerThanAByteCanSayAreCutButNotEndless) {
  const Dfa many = machine([](Grammar& g) {
    return g.repeat(g.characters(CharSet{{'a', 'z'}}), 0, 600);
  });
  const CharRun run = run_of(char_runs(many, {}), 0, CharClass::kLower);
  EXPECT_EQ(run.length, kEndlessRun - 1);
  EXPECT_FALSE(run.to_end);
}

TEST(CharRuns, ACallGivesItsStateWhatItTakes) {
  Dfa caller;
  caller.calls.push_back({.call = 1, .to = 1});
  caller.states = {{.calls_begin = 0, .calls_end = 1},
                   {.calls_begin = 1, .calls_end = 1, .final = true}};
  std::vector<CharRuns> called(2, CharRuns{});
  called[0][static_cast<size_t>(CharClass::kLower)].length = 9;
  called[1][static_cast<size_t>(CharClass::kLower)].length = 4;
  const std::vector<CharRuns> runs = char_runs(caller, called);
  EXPECT_EQ(run_of(runs, 0, CharClass::kLower).length, 4);
  EXPECT_FALSE(run_of(runs, 0, CharClass::kLower).to_end) << "the caller goes on after it";
  EXPECT_EQ(run_of(runs, 0, CharClass::kLetter).length, 0);
  EXPECT_EQ(run_of(char_runs(caller, {}), 0, CharClass::kLower).length, 0) << "not known";
}

TEST(CharRuns, ClassesArePartsOfTheOneBefore) {
  for (uint8_t c = 0; c < 0x80; ++c)
    for (size_t which = 1; which < kCharClasses; ++which)
      EXPECT_LE(in_class(static_cast<CharClass>(which), c),
                in_class(static_cast<CharClass>(which - 1), c))
          << int{c};
}

bool loops_on(const CharLoops& loops, char c) {
  return loops.ascii[static_cast<size_t>(c) / 64] >> (static_cast<size_t>(c) % 64) & 1;
}

TEST(CharLoops, AreTheCharactersThatLeadBack) {
  const Dfa dfa = machine([](Grammar& g) {
    return g.concat(
        {g.repeat(g.characters(CharSet{{'a', 'f'}, {'0', '9'}}), 0, kUnbounded), g.literal("!")});
  });
  const CharLoops loops = char_loops(dfa).front();
  for (char c = 0x20; c < 0x7f; ++c)
    EXPECT_EQ(loops_on(loops, c), (c >= 'a' && c <= 'f') || (c >= '0' && c <= '9')) << c;
  EXPECT_FALSE(loops.wide);
  const Dfa wide = machine([](Grammar& g) {
    return g.concat({g.repeat(g.characters(text_characters()), 0, kUnbounded), g.literal("\"")});
  });
  EXPECT_TRUE(char_loops(wide).front().wide);
  EXPECT_FALSE(loops_on(char_loops(wide).front(), '"'));
}

// A state that is left for good by its first character loops where that leads to.
TEST(CharLoops, MayBeThoseOfTheNextState) {
  Dfa dfa;
  dfa.ranges = {{'a', 'z', 1}, {'0', '9', 1}, {'m', 'z', 1}};
  dfa.states = {{.ranges_begin = 0, .ranges_end = 1},
                {.ranges_begin = 1, .ranges_end = 3, .final = true}};
  const CharLoops loops = char_loops(dfa).front();
  for (const char c : {'m', 'z'}) EXPECT_TRUE(loops_on(loops, c)) << c;
  for (const char c : {'a', 'l', '0', '9'}) EXPECT_FALSE(loops_on(loops, c)) << c;
}

}  // namespace
}  // namespace weir::grammar
