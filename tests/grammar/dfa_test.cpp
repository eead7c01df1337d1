// Automata beside a search of their drafts: random NFAs, and every short text over a few symbols.
#include "grammar/dfa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weir::grammar {
namespace {

using Text = std::vector<uint16_t>;

// The ends of the bytes and of the symbols above them are among these; 'b' and 'c' are neighbours.
constexpr std::array<uint16_t, 6> kAlphabet = {0, 'b', 'c', 255, kBegin, kEnd};
constexpr size_t kLengthMax = 4;

const std::vector<Text>& short_texts() {
  static const std::vector<Text> texts = [] {
    std::vector<Text> all{{}};
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].size() == kLengthMax) break;
      for (const uint16_t symbol : kAlphabet) {
        Text longer = all[i];
        longer.push_back(symbol);
        all.push_back(longer);
      }
    }
    return all;
  }();
  return texts;
}

// Follows every edge from every state, one at a time, as often as there are ways; only what has
// been at the same state of the same text before is not looked at again.
bool search(const Nfa& nfa, const Text& text) {
  std::set<std::pair<int32_t, size_t>> seen;
  std::vector<std::pair<int32_t, size_t>> open{{nfa.start, 0}};
  while (!open.empty()) {
    const auto [state, at] = open.back();
    open.pop_back();
    if (!seen.emplace(state, at).second) continue;
    if (state == nfa.final && at == text.size()) return true;
    for (int32_t e = nfa.first_edge[static_cast<size_t>(state)]; e >= 0;
         e = nfa.edges[static_cast<size_t>(e)].next) {
      const Nfa::Edge& edge = nfa.edges[static_cast<size_t>(e)];
      if (edge.call == Nfa::kEmpty) open.emplace_back(edge.to, at);
      if (edge.call == Nfa::kSymbols && at < text.size() && edge.first <= text[at] &&
          text[at] <= edge.last)
        open.emplace_back(edge.to, at + 1);
    }
  }
  return false;
}

bool reads(const Dfa& dfa, const Text& text) {
  if (dfa.empty()) return false;
  int32_t state = 0;
  for (const uint16_t symbol : text)
    if ((state = dfa.next(state, symbol)) < 0) return false;
  return dfa.states[static_cast<size_t>(state)].final;
}

Nfa random_nfa(std::mt19937& random) {
  const auto pick = [&](size_t count) { return static_cast<size_t>(random() % count); };
  Nfa nfa;
  const size_t states = 2 + pick(6);
  for (size_t i = 0; i < states; ++i) nfa.add_state();
  nfa.start = static_cast<int32_t>(pick(states));
  nfa.final = static_cast<int32_t>(pick(states));
  for (size_t i = pick(3 * states) + 1; i > 0; --i) {
    const auto from = static_cast<int32_t>(pick(states)), to = static_cast<int32_t>(pick(states));
    if (pick(4) == 0) {
      nfa.add_empty(from, to);
      continue;
    }
    const size_t a = pick(kAlphabet.size()), b = pick(3) == 0 ? pick(kAlphabet.size()) : a;
    nfa.add_symbols(from, to, kAlphabet[std::min(a, b)], kAlphabet[std::max(a, b)]);
  }
  return nfa;
}

Dfa determinised(const Nfa& nfa) {
  Budget budget;
  auto dfa = determinise(nfa, budget);
  EXPECT_TRUE(dfa.has_value());
  return std::move(*dfa);
}

void expect_invariants(const Dfa& dfa) {
  const auto count = static_cast<int32_t>(dfa.states.size());
  for (int32_t state = 0; state < count; ++state) {
    int last = -1, last_to = -1;
    for (const Dfa::Range& range : dfa.ranges_of(state)) {
      ASSERT_LE(range.first, range.last);
      ASSERT_LT(last, range.first) << "ranges overlap or are not sorted";
      ASSERT_FALSE(last + 1 == range.first && last_to == range.to) << "two ranges that are one";
      ASSERT_TRUE(range.to >= 0 && range.to < count);
      last = range.last;
      last_to = range.to;
    }
    int32_t call = -1;
    for (const Dfa::Call& each : dfa.calls_of(state)) {
      ASSERT_LT(call, each.call);
      ASSERT_TRUE(each.to >= 0 && each.to < count);
      call = each.call;
    }
  }
}

// States that `from` leads to, itself too.
std::vector<bool> reached_from(const Dfa& dfa, int32_t from) {
  std::vector<bool> reached(dfa.states.size(), false);
  reached[static_cast<size_t>(from)] = true;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t state = 0; state < dfa.states.size(); ++state) {
      if (!reached[state]) continue;
      const auto visit = [&](int32_t to) {
        if (!reached[static_cast<size_t>(to)]) reached[static_cast<size_t>(to)] = changed = true;
      };
      for (const Dfa::Range& range : dfa.ranges_of(static_cast<int32_t>(state))) visit(range.to);
      for (const Dfa::Call& call : dfa.calls_of(static_cast<int32_t>(state))) visit(call.to);
    }
  }
  return reached;
}

void expect_trimmed(const Dfa& dfa) {
  if (dfa.empty()) return;
  const std::vector<bool> reached = reached_from(dfa, 0);
  for (size_t state = 0; state < dfa.states.size(); ++state) {
    EXPECT_TRUE(reached[state]) << "no path leads to state " << state;
    const std::vector<bool> onward = reached_from(dfa, static_cast<int32_t>(state));
    bool ends = false;
    for (size_t other = 0; other < dfa.states.size(); ++other)
      ends = ends || (onward[other] && dfa.states[other].final);
    EXPECT_TRUE(ends) << "state " << state << " has no way to the end";
  }
}

TEST(Dfa, AcceptsWhatASearchOfItsDraftFinds) {
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 500; ++round) {
    const Nfa nfa = random_nfa(random);
    const Dfa dfa = determinised(nfa);
    const Dfa trimmed = trim(dfa);
    expect_invariants(dfa);
    expect_invariants(trimmed);
    expect_trimmed(trimmed);
    for (const Text& text : short_texts()) {
      const bool expected = search(nfa, text);
      ASSERT_EQ(reads(dfa, text), expected) << round << ": " << testing::PrintToString(text);
      ASSERT_EQ(reads(trimmed, text), expected) << round << ": " << testing::PrintToString(text);
      accepted += expected;
    }
  }
  EXPECT_GT(accepted, 10'000);
}

TEST(Dfa, AcceptsTextsOfBytesAsItReadsSymbols) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    const Dfa dfa = trim(determinised(random_nfa(random)));
    for (const Text& text : short_texts()) {
      std::string bytes;
      for (const uint16_t symbol : text) bytes += static_cast<char>(symbol);
      if (std::ranges::any_of(text, [](uint16_t symbol) { return symbol > 255; })) continue;
      ASSERT_EQ(dfa.accepts(bytes), reads(dfa, text)) << testing::PrintToString(text);
    }
  }
}

TEST(Dfa, IntersectionAndDifferenceAreThoseOfTheTexts) {
  std::mt19937 random(3);
  int both = 0, one = 0;
  for (int round = 0; round < 500; ++round) {
    const Nfa nfa_a = random_nfa(random), nfa_b = random_nfa(random);
    Dfa a = determinised(nfa_a), b = determinised(nfa_b);
    if (round % 2 == 0) a = trim(a);
    if (round % 3 == 0) b = trim(b);
    Budget budget;
    const auto common = intersect(a, b, budget), rest = subtract(a, b, budget);
    ASSERT_TRUE(common && rest);
    expect_trimmed(*common);
    expect_trimmed(*rest);
    for (const Text& text : short_texts()) {
      const bool in_a = search(nfa_a, text), in_b = search(nfa_b, text);
      ASSERT_EQ(reads(*common, text), in_a && in_b) << testing::PrintToString(text);
      ASSERT_EQ(reads(*rest, text), in_a && !in_b) << testing::PrintToString(text);
      both += in_a && in_b;
      one += in_a && !in_b;
    }
  }
  EXPECT_GT(both, 1'000);
  EXPECT_GT(one, 1'000);
}

TEST(Dfa, NothingIsLeftOfALanguageWithoutATextAndOfItselfTakenAway) {
  Nfa nfa;
  nfa.start = nfa.add_state();
  nfa.final = nfa.add_state();
  const int32_t dead = nfa.add_state();
  nfa.add_symbols(nfa.start, dead, 'a', 'z');
  EXPECT_FALSE(determinised(nfa).empty()) << "nothing is trimmed";
  EXPECT_TRUE(trim(determinised(nfa)).empty());
  nfa.add_symbols(dead, nfa.final, 'a', 'z');
  nfa.add_empty(nfa.final, nfa.start);
  const Dfa pairs = trim(determinised(nfa));
  Budget budget;
  EXPECT_TRUE(subtract(pairs, pairs, budget)->empty());
  EXPECT_TRUE(intersect(pairs, {}, budget)->empty());
  EXPECT_TRUE(subtract({}, pairs, budget)->empty());
  EXPECT_TRUE(subtract(pairs, {}, budget)->accepts("ab"));
  EXPECT_FALSE(Dfa{}.accepts(""));
}

// A call is an edge like another one here: the same call from several drafted states leads to one
// state, and those of what has no sentence are dropped with all that only they lead to.
TEST(Dfa, CallsAreMergedAndUnproductiveOnesAreDropped) {
  Nfa nfa;
  for (int i = 0; i < 6; ++i) nfa.add_state();
  nfa.start = 0;
  nfa.final = 5;
  nfa.add_call(0, 1, 7);
  nfa.add_call(0, 2, 7);
  nfa.add_call(0, 3, 2);
  nfa.add_symbols(1, 5, 'x', 'x');
  nfa.add_symbols(2, 5, 'y', 'y');
  nfa.add_symbols(3, 5, 'z', 'z');
  const Dfa dfa = determinised(nfa);
  expect_invariants(dfa);
  ASSERT_EQ(dfa.calls_of(0).size(), 2u);
  EXPECT_EQ(dfa.calls_of(0)[0].call, 2);
  EXPECT_EQ(dfa.calls_of(0)[1].call, 7);
  const int32_t after = dfa.calls_of(0)[1].to;
  EXPECT_GE(dfa.next(after, 'x'), 0);
  EXPECT_GE(dfa.next(after, 'y'), 0);
  EXPECT_LT(dfa.next(after, 'z'), 0);
  std::vector<bool> productive(8, true);
  productive[2] = false;
  const Dfa trimmed = trim(dfa, productive);
  ASSERT_EQ(trimmed.calls_of(0).size(), 1u);
  EXPECT_EQ(trimmed.calls_of(0)[0].call, 7);
  EXPECT_EQ(trimmed.states.size(), 3u);
  productive[7] = false;
  EXPECT_TRUE(trim(dfa, productive).empty());
}

// The n-th symbol from the end is an 'a': no automaton has fewer than 2^n states, and the subsets
// are just those.
Nfa nth_from_the_end(int n) {
  Nfa nfa;
  nfa.start = nfa.add_state();
  nfa.add_symbols(nfa.start, nfa.start, 'a', 'b');
  int32_t at = nfa.add_state();
  nfa.add_symbols(nfa.start, at, 'a', 'a');
  for (int i = 1; i < n; ++i) {
    const int32_t next = nfa.add_state();
    nfa.add_symbols(at, next, 'a', 'b');
    at = next;
  }
  nfa.final = at;
  return nfa;
}

TEST(Dfa, IsRefusedAtExactlyOneStateTooMany) {
  const Nfa nfa = nth_from_the_end(8);
  Budget enough;
  enough.states = 256;
  const auto dfa = determinise(nfa, enough);
  ASSERT_TRUE(dfa.has_value());
  EXPECT_EQ(dfa->states.size(), 256u);
  EXPECT_EQ(enough.states, 0);
  Budget short_of_one;
  short_of_one.states = 255;
  EXPECT_FALSE(determinise(nfa, short_of_one).has_value());
  Budget little_work;
  little_work.work = 1000;
  EXPECT_FALSE(determinise(nfa, little_work).has_value());
  Budget product_budget;
  product_budget.states = 255;
  EXPECT_FALSE(intersect(*dfa, *dfa, product_budget).has_value());
}

TEST(Dfa, IsNotMadeAfterAnInterrupt) {
  Interrupt interrupt;
  interrupt.stop();
  Budget budget;
  budget.interrupt = &interrupt;
  EXPECT_FALSE(determinise(nth_from_the_end(8), budget).has_value());
}

}  // namespace
}  // namespace weir::grammar
