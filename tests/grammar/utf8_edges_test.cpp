// Sets of characters as automata over their bytes: all members are accepted, and the number of
// accepted texts is the number of members, so nothing else is.
#include "grammar/utf8_edges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "base/utf8.h"

namespace weir::grammar {
namespace {

Dfa edges_of(const CharSet& set) {
  Nfa nfa;
  nfa.start = nfa.add_state();
  nfa.final = nfa.add_state();
  Utf8Edges(nfa, nfa.final).add(set, nfa.start);
  Budget budget;
  const auto dfa = determinise(nfa, budget);
  EXPECT_TRUE(dfa.has_value());
  return trim(*dfa);
}

// REQUIRES: no text has more than `bytes_max` bytes.
int64_t texts_of(const Dfa& dfa, int32_t state, int bytes_max) {
  int64_t count = dfa.states[static_cast<size_t>(state)].final ? 1 : 0;
  EXPECT_GE(bytes_max, 0) << "a text is longer than a character";
  if (bytes_max < 0) return 0;
  for (const Dfa::Range& range : dfa.ranges_of(state))
    count += (range.last - range.first + 1) * texts_of(dfa, range.to, bytes_max - 1);
  return count;
}

void expect_just(const std::vector<CharRange>& ranges) {
  CharSet set;
  std::vector<bool> members(0x110000, false);
  for (const CharRange& range : ranges) {
    set.add(range.first, range.last);
    for (char32_t c = range.first; c <= range.last; ++c) members[c] = c < 0xd800 || c > 0xdfff;
  }
  const Dfa dfa = edges_of(set);
  int64_t count = 0;
  for (char32_t c = 0; c <= 0x10ffff; ++c) {
    if (!members[c]) continue;
    ++count;
    std::string text;
    append_utf8(text, c);
    ASSERT_TRUE(dfa.accepts(text)) << std::hex << static_cast<uint32_t>(c);
  }
  EXPECT_EQ(dfa.empty() ? 0 : texts_of(dfa, 0, 4), count);
}

// The last character of one length in bytes, the first of the next, and both ends of a lead byte.
constexpr char32_t kBorders[] = {0x0,    0x7f,   0x80,   0x7ff,   0x800,   0xfff,   0x1000,
                                 0xd7ff, 0xe000, 0xffff, 0x10000, 0x3ffff, 0x40000, 0x10ffff};

TEST(Utf8Edges, RangesBetweenAllBordersHaveJustTheirCharacters) {
  for (const char32_t first : kBorders)
    for (const char32_t last : kBorders)
      if (first <= last) expect_just({{first, last}});
}

TEST(Utf8Edges, RandomSetsHaveJustTheirCharacters) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    std::vector<CharRange> ranges;
    for (size_t i = 1 + random() % 5; i > 0; --i) {
      const auto first = static_cast<char32_t>(random() % 0x110000 >> random() % 21);
      const auto length = static_cast<char32_t>(random() % 0x10000 >> random() % 17);
      ranges.push_back({first, std::min<char32_t>(first + length, 0x10ffff)});
    }
    expect_just(ranges);
  }
}

TEST(Utf8Edges, SurrogatesAreInNoSet) {
  expect_just({{0xd800, 0xdfff}});
  expect_just({{0xd7ff, 0xe000}});
  EXPECT_TRUE(edges_of(CharSet{{0xd800, 0xdbff}}).empty());
  EXPECT_FALSE(edges_of(CharSet::all()).accepts("\xed\xa0\x80"));
}

}  // namespace
}  // namespace weir::grammar
