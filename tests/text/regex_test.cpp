#include "text/regex.h"

#include <gtest/gtest.h>

#include "text/oniguruma.h"

namespace weir::text {
namespace {

std::vector<std::string> matches_of(std::string_view expression, std::string_view subject) {
  auto pattern = Pattern::regex(expression);
  EXPECT_TRUE(pattern.has_value()) << pattern.error().message;
  std::vector<std::string> found;
  if (!pattern) return found;
  std::vector<Match> matches;
  EXPECT_TRUE(pattern->find_matches(subject, matches));
  for (const Match& match : matches)
    found.emplace_back(subject.substr(match.begin, match.end - match.begin));
  return found;
}

using Found = std::vector<std::string>;

TEST(Regex, IntersectsCharacterClasses) {
  EXPECT_EQ(matches_of("[\\p{L}&&[^\\p{Han}]]+", "ab日本c1"), (Found{"ab", "c"}));
  EXPECT_EQ(matches_of("[a-z&&[^aeiou]&&[^x-z]]", "abxc"), (Found{"b", "c"}));
  EXPECT_EQ(matches_of("[^a-z&&[^x]]+", "abxc1"), (Found{"x", "1"}));
}

TEST(Regex, UnitesNestedAndNegatedClasses) {
  EXPECT_EQ(matches_of("[a[x-z]]+", "axbz"), (Found{"ax", "z"}));
  EXPECT_EQ(matches_of("[\\Wa]+", "b a!c"), (Found{" a!"}));
  EXPECT_EQ(matches_of("[^\\W]+", "b a!c"), (Found{"b", "a", "c"}));
  EXPECT_EQ(matches_of("[]a]+", "x]a"), (Found{"]a"}));
}

TEST(Regex, HasOnigurumasShorthands) {
  EXPECT_EQ(matches_of("\\h+", "x1f g"), (Found{"1f"}));  // Hexadecimal digits, not blanks.
  EXPECT_EQ(matches_of("\\s",
                       "a\xe1\xa0\x8e"
                       "b\xc2\x85"),
            (Found{"\xc2\x85"}));  // Not U+180E.
  EXPECT_EQ(matches_of("\\w+", "é_\xcc\x81²①"), (Found{"é_\xcc\x81²"}));
  EXPECT_EQ(matches_of("[[:punct:]]", "a+,¢"), (Found{"+", ",", "¢"}));
  EXPECT_EQ(matches_of("\\p{Punct}", "a+,¢"), (Found{","}));
  EXPECT_EQ(matches_of("\\p{^L}", "a1"), (Found{"1"}));
  EXPECT_EQ(matches_of("\\P{Letter}", "a1"), (Found{"1"}));
}

TEST(Regex, HasOnigurumasScripts) {
  // U+3001 is Common; by Script_Extensions it would be Han too.
  EXPECT_EQ(matches_of("\\p{Han}", "日、"), (Found{"日"}));
}

TEST(Regex, HasRubysLinesAndDots) {
  EXPECT_EQ(matches_of("^.", "ab\ncd"), (Found{"a", "c"}));
  EXPECT_EQ(matches_of(".$", "ab\ncd"), (Found{"b", "d"}));
  EXPECT_EQ(matches_of("\\A.", "ab\ncd"), (Found{"a"}));
  EXPECT_EQ(matches_of("b(?m:.)c", "ab\ncd"), (Found{"b\nc"}));
}

TEST(Regex, HasRubysIntervals) {
  EXPECT_EQ(matches_of("^a{,2}", "aaa"), (Found{"aa"}));
  EXPECT_EQ(matches_of("^a{2}+", "aaaaa"), (Found{"aaaa"}));  // Twice two, not possessive.
  EXPECT_EQ(matches_of("a{x}", "a{x}"), (Found{"a{x}"}));
}

TEST(Regex, FindsEmptyMatchesButNotBehindAMatch) {
  EXPECT_EQ(matches_of("a*", "baac"), (Found{"", "aa", ""}));
  EXPECT_EQ(matches_of("x*", "é"), (Found{"", ""}));
}

TEST(Regex, RefusesWhatItWouldGetWrong) {
  for (const char* expression :
       {"(?x)a", "a(?i)b", "\\M-a", "\\xff", "[\\y]", "\\p{}", "\\p", "[b-a]", "\\", "a)", "(?~a)",
        "(?P<n>a)", "\\k", "\\u12", "\\x{110000}", "\\x{d800}"}) {
    EXPECT_FALSE(translate_oniguruma(expression).has_value()) << expression;
  }
}

TEST(Regex, ReportsThatItGaveUp) {
  const auto pattern = Pattern::regex("(a|aa|a+)+$");
  ASSERT_TRUE(pattern.has_value());
  std::vector<Match> matches;
  EXPECT_FALSE(pattern->find_matches(std::string(200, 'a') + "b", matches));
}

// Each match looks to the end of the text, which costs 2 x 10^10 steps together.
TEST(Regex, GivesUpWhereAllMatchesTogetherCostTooMuch) {
  const auto pattern = Pattern::regex("a(?=a*b)|a");
  ASSERT_TRUE(pattern.has_value());
  std::vector<Match> matches;
  EXPECT_TRUE(pattern->find_matches(std::string(1000, 'a'), matches));
  EXPECT_EQ(matches.size(), 1000u);
  EXPECT_FALSE(pattern->find_matches(std::string(200'000, 'a'), matches));
}

// One match a byte, or an empty one, costs the most windows of all that real patterns do.
TEST(Regex, DoesNotGiveUpOnLongTextsOfShortMatches) {
  std::string text;
  while (text.size() < 2 << 20) text += "a b ";
  for (const char* expression : {"\\p{L}|\\s", "\\p{L}+|\\s+(?!\\S)|\\s+", "x*", "\\b"}) {
    const auto pattern = Pattern::regex(expression);
    ASSERT_TRUE(pattern.has_value());
    std::vector<Match> matches;
    EXPECT_TRUE(pattern->find_matches(text, matches)) << expression;
    EXPECT_GE(matches.size(), text.size() - 1) << expression;
  }
}

// A search sees 64 bytes first: nothing may depend on where that ends.
TEST(Regex, FindsTheSameHoweverLongItsMatchesAre) {
  const auto ends_of = [](const char* expression, const std::string& text) {
    const auto pattern = Pattern::regex(expression);
    EXPECT_TRUE(pattern.has_value()) << expression;
    std::vector<Match> matches;
    EXPECT_TRUE(pattern->find_matches(text, matches)) << expression;
    std::vector<size_t> ends;
    for (const Match& match : matches) ends.push_back(match.end);
    return ends;
  };
  using Ends = std::vector<size_t>;
  for (const size_t around : {64u, 256u, 1024u}) {
    for (size_t n = around - 8; n < around + 8; ++n) {
      const std::string as(n, 'a');
      EXPECT_EQ(ends_of("a+", as), (Ends{n}));
      EXPECT_EQ(ends_of("a+", as + "b"), (Ends{n}));
      EXPECT_EQ(ends_of("a+$", as + "b"), Ends{});
      EXPECT_EQ(ends_of("a+$", as + "\nb"), (Ends{n}));
      EXPECT_EQ(ends_of("a+\\b", as + "b"), Ends{});
      EXPECT_EQ(ends_of("a+?(?=b)|b", as + "b"), (Ends{n, n + 1}));
      EXPECT_EQ(ends_of("a+(?!b)", as + "b"), (Ends{n - 1}));
      EXPECT_EQ(ends_of("a+(?!b)", as), (Ends{n}));
      EXPECT_EQ(ends_of("(?<=a)b", as + "b"), (Ends{n + 1}));
      EXPECT_EQ(ends_of("b", as + "b" + as), (Ends{n + 1}));
      EXPECT_EQ(ends_of("\\z", as), (Ends{n}));
      EXPECT_EQ(ends_of("(?=b)|\\z", as + "b"), (Ends{n, n + 1}));
      std::string accents;
      while (accents.size() < n) accents += "\xc3\xa9";
      EXPECT_EQ(ends_of("\\p{L}+", accents + "!"), (Ends{accents.size()}));
      EXPECT_EQ(ends_of("\\s+(?!\\S)|\\s+|\\p{L}+", std::string(n, ' ') + "x"),
                (Ends{n - 1, n, n + 1}));
    }
  }
}

TEST(Pattern, FindsLiteralsWithoutOverlap) {
  std::vector<Match> matches;
  EXPECT_TRUE(Pattern::literal("aa").find_matches("aaaaa", matches));
  ASSERT_EQ(matches.size(), 2u);
  EXPECT_EQ(matches[1].begin, 2u);
}

}  // namespace
}  // namespace weir::text
