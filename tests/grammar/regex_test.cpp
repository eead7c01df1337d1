// Regular expressions: what they match, also beside the C library's, and what is refused.
#include <gtest/gtest.h>
#include <regex.h>

#include <random>

#include "matching.h"

namespace weir::grammar {
namespace {

struct Sample {
  const char* pattern;
  std::vector<std::string> yes, no;
};

TEST(Regex, WholeTextsMatchAsWritten) {
  const Sample samples[] = {
      {"abc", {"abc"}, {"", "ab", "abcd"}},
      {"a|bc|", {"a", "bc", ""}, {"b", "abc"}},
      {"(a|b)*c", {"c", "abbac"}, {"ab", "cc"}},
      {"a{2,4}", {"aa", "aaaa"}, {"a", "aaaaa"}},
      {"a{3}", {"aaa"}, {"aa", "aaaa"}},
      {"a{2,}", {"aa", "aaaaaaaaa"}, {"a"}},
      {"a{", {"a{"}, {"a"}},
      {"[a-c\\d_]+", {"a1_", "b"}, {"", "d", "-"}},
      {"[^a-c]", {"d", "\n", "\xc3\xa9", "\xf0\x9f\xa6\x9c"}, {"a", "", "dd", "\xc3"}},
      {"[]a]", {}, {"]", "a", "]a]", "x"}},
      {"[a-]", {"a", "-"}, {"b"}},
      {"[\\w-.]", {"a", "-", "."}, {","}},
      {".", {"a", "\xe6\x97\xa5"}, {"\n", "\r", "ab", "\xe6\x97"}},
      {"\\x41\\u0042\\u{1F99C}", {"AB\xf0\x9f\xa6\x9c"}, {"AB"}},
      {"\\ud83e\\udd9c", {"\xf0\x9f\xa6\x9c"}, {}},
      {"^a$", {"a"}, {"aa", ""}},
      {"^a|b$", {"a", "b"}, {"ab"}},
      {"(^a|b)c$", {"ac", "bc"}, {"aac"}},
      {"(?:ab)+?", {"ab", "abab"}, {"aba"}},
      {"(?<year>\\d{4})-(?P<m>\\d\\d)", {"2024-11"}, {"224-11"}},
      {"\\$\\^\\.\\/", {"$^./"}, {"a"}},
      {"(a*)*", {"", "aaa"}, {"b"}},
      {"(a?){3}b", {"b", "aaab"}, {"aaaab"}},
  };
  for (const Sample& sample : samples) {
    const auto automaton = compiled_regex(sample.pattern);
    if (!automaton) {
      EXPECT_TRUE(sample.yes.empty()) << sample.pattern << ": " << automaton.error().message;
      continue;
    }
    for (const std::string& text : sample.yes)
      EXPECT_TRUE(matches(*automaton, text)) << sample.pattern << " on " << text;
    for (const std::string& text : sample.no)
      EXPECT_FALSE(matches(*automaton, text)) << sample.pattern << " on " << text;
  }
}

TEST(Regex, SearchFindsThePatternAnywhere) {
  const Sample samples[] = {
      {"b", {"b", "abc", "bb"}, {"", "a"}},
      {"^b", {"b", "bc"}, {"ab"}},
      {"b$", {"b", "ab"}, {"ba"}},
      {"^(a|b$)", {"a", "ax", "b"}, {"bx", "xb"}},
      {"(^|,)a(,|$)", {"a", "x,a,y", "a,b", "b,a"}, {"xa", "ax", "b,ab"}},
      {"", {"", "anything"}, {}},
  };
  for (const Sample& sample : samples) {
    const auto automaton = compiled_regex(sample.pattern, Spelling::kPlain, RegexMatch::kSearch);
    ASSERT_TRUE(automaton) << sample.pattern << ": " << automaton.error().message;
    for (const std::string& text : sample.yes)
      EXPECT_TRUE(matches(*automaton, text)) << sample.pattern << " on " << text;
    for (const std::string& text : sample.no)
      EXPECT_FALSE(matches(*automaton, text)) << sample.pattern << " on " << text;
  }
}

TEST(Regex, InsideJsonEachCharacterHasOneSpelling) {
  const auto automaton = compiled_regex("[^a]{2}", Spelling::kJson);
  ASSERT_TRUE(automaton) << automaton.error().message;
  for (const char* text : {"bb", "\\\"b", "\\\\\\n", "\\u0001\xc3\xa9"})
    EXPECT_TRUE(matches(*automaton, text)) << text;
  for (const char* text : {"\"b", "\\u0062b", "\nb", "\\", "\\u000ab", "ab"})
    EXPECT_FALSE(matches(*automaton, text)) << text;
}

TEST(Regex, LongRepetitionsAreCounted) {
  for (const auto& [pattern, low, high] :
       {std::tuple{"[ab]{3000,70000}", 3000, 70000}, std::tuple{"[ab]{5000}", 5000, 5000},
        std::tuple{"(abababab|cd){2000,2100}", 2000, 2100}}) {
    const auto automaton = compiled_regex(pattern);
    ASSERT_TRUE(automaton) << pattern << ": " << automaton.error().message;
    EXPECT_LT((*automaton)->memory_bytes(), 1u << 20);
    const std::string unit = std::string_view(pattern).starts_with("(") ? "cd" : "a";
    std::string text;
    Matcher matcher(*automaton, small_vocabulary());
    MatchScratch scratch;
    for (int i = 0; i <= high; ++i) {
      ASSERT_EQ(matcher.may_end(), i >= low && i <= high) << pattern << " " << i;
      ASSERT_EQ(matcher.must_end(), i == high);
      ASSERT_EQ(matcher.accept(unit, scratch), i < high);
    }
    matcher.check();
    EXPECT_LT(matcher.memory_bytes(), 200000u);
  }
}

TEST(Regex, WhatIsNotRegularIsRefusedByName) {
  for (const auto& [pattern, word] :
       {std::pair{"(a)\\1", "backreference"}, std::pair{"(?=a)b", "lookahead"},
        std::pair{"(?<!a)b", "lookbehind"}, std::pair{"\\bword", "word boundaries"},
        std::pair{"\\p{L}", "Unicode properties"}, std::pair{"(?i)a", "flags"},
        std::pair{"a++", "possessive"}, std::pair{"(a", "')'"}, std::pair{"a)", "')'"},
        std::pair{"[a", "']'"}, std::pair{"*a", "repeat"}, std::pair{"a{3,2}", "wrong way"},
        std::pair{"\xff", "UTF-8"}, std::pair{"a{2000000}", "repetitions"}}) {
    const auto automaton = compiled_regex(pattern);
    ASSERT_FALSE(automaton) << pattern;
    EXPECT_NE(automaton.error().message.find(word), std::string::npos) << automaton.error().message;
  }
}

TEST(Regex, CatastrophesAreRefusedOrFast) {
  for (const char* pattern :
       {"(a+)+$", "(a|a)*b", "(a|b)*a(a|b){30}", "((a{0,1000}){0,1000}){0,1000}", "(.*a){50}",
        "((((((((((a*)*)*)*)*)*)*)*)*)*)*", "(x+x+)+y", "a{1000000}{1000000}",
        "(.{0,900}b){0,900}"}) {
    for (const RegexMatch match : {RegexMatch::kWhole, RegexMatch::kSearch}) {
      const auto automaton = compiled_regex(pattern, Spelling::kPlain, match);
      if (!automaton) {
        EXPECT_NE(automaton.error().message.find("complex"), std::string::npos);
        continue;
      }
      Matcher matcher(*automaton, small_vocabulary());
      MatchScratch scratch;
      for (int i = 0; i < 200; ++i) matcher.accept("a", scratch);
      matcher.check();
    }
  }
}

// Patterns made at random from what POSIX reads in the same way, on texts of few characters.
TEST(Regex, AgreesWithPosixOnRandomPatterns) {
  std::mt19937 random(7);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto pattern = [&](auto& self, int depth) -> std::string {
    switch (depth == 0 ? pick(3) : pick(9)) {
      case 0:
        return "a";
      case 1:
        return "b";
      case 2:
        return "[ac]";
      case 3:
        return self(self, depth - 1) + self(self, depth - 1);
      case 4:
        return "(" + self(self, depth - 1) + "|" + self(self, depth - 1) + ")";
      case 5:
        return "(" + self(self, depth - 1) + ")*";
      case 6:
        return "(" + self(self, depth - 1) + "){1,3}";
      case 7:
        return "(" + self(self, depth - 1) + ")?";
      default:
        return "[^b]" + self(self, depth - 1);
    }
  };
  int matched = 0;
  for (int round = 0; round < 400; ++round) {
    const std::string text = pattern(pattern, 3);
    regex_t expected{};
    ASSERT_EQ(regcomp(&expected, ("^(" + text + ")$").c_str(), REG_EXTENDED | REG_NOSUB), 0)
        << text;
    const auto automaton = compiled_regex(text);
    ASSERT_TRUE(automaton) << text;
    for (int i = 0; i < 30; ++i) {
      std::string candidate;
      for (int n = pick(7); n > 0; --n) candidate += "abc"[pick(3)];
      const bool want = regexec(&expected, candidate.c_str(), 0, nullptr, 0) == 0;
      matched += want;
      EXPECT_EQ(matches(*automaton, candidate), want) << text << " on '" << candidate << "'";
    }
    regfree(&expected);
  }
  EXPECT_GT(matched, 500);
}

}  // namespace
}  // namespace weir::grammar
