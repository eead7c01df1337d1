// GBNF and Lark grammars, choices, and grammars that are recursive or ambiguous.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "grammar_matcher.h"
#include "sample/grammar/source.h"

namespace weir::sample::grammar {
namespace {

Result<std::shared_ptr<const Automaton>> compiled_grammar(std::string text) {
  WEIR_ASSIGN(auto automaton,
              compile(GrammarSource{
                  .kind = GrammarSource::Kind::kGrammar, .text = std::move(text), .choices = {}}));
  return std::shared_ptr<const Automaton>(std::move(automaton));
}

struct Sample {
  const char* grammar;
  std::vector<std::string> yes, no;
};

void expect_samples(std::span<const Sample> samples) {
  for (const Sample& sample : samples) {
    const auto automaton = compiled_grammar(sample.grammar);
    ASSERT_TRUE(automaton) << sample.grammar << ": " << automaton.error().message;
    for (const std::string& text : sample.yes)
      EXPECT_TRUE(matches(*automaton, text)) << sample.grammar << " on " << text;
    for (const std::string& text : sample.no)
      EXPECT_FALSE(matches(*automaton, text)) << sample.grammar << " on " << text;
  }
}

TEST(Gbnf, ReadsLlamaCppsNotation) {
  const Sample samples[] = {
      {"root ::= \"a\" | \"b\"", {"a", "b"}, {"ab", ""}},
      {"# comment\nroot ::= item+ # more\nitem ::= \"x\" ws\nws ::= [ \\t\\n]*\n",
       {"x", "x x", "x\n"},
       {"", "y"}},
      {"root ::= (\n  \"a\"\n  | \"b\"\n)?", {"", "a", "b"}, {"c"}},
      {"root ::= \"a\"\n  | \"b\"\nother ::= \"c\"", {"a", "b"}, {"c"}},
      {"root ::= [^\\n\"]{2,3}", {"ab", "abc", "\xe6\x97\xa5x"}, {"a", "abcd", "a\n"}},
      {"root ::= [a-z]{2} [0-9]{1,} \"!\"{,2}", {"ab1", "ab12!!"}, {"a1", "ab", "ab1!!!"}},
      {"root ::= \"\\x41\\u00e9\\U0001F99C\\\\\"", {"A\xc3\xa9\xf0\x9f\xa6\x9c\\"}, {}},
      {"root ::= .", {"a", "\n", "\xf0\x9f\xa6\x9c"}, {"", "ab"}},
      {"root ::= e\ne ::= e \"+\" t | t\nt ::= \"1\" | \"(\" e \")\"",
       {"1", "1+1", "(1+1)+1"},
       {"+1", "1+", "(1"}},
      {"root ::= \"(\" root \")\" | \"\"", {"", "()", "((()))"}, {"(", "(()"}},
      {"root ::= \"a\" root | \"\"", {"", "aaaaaaaa"}, {"b"}},
      {"root ::= [-a-]+", {"-", "a-"}, {"b"}},
  };
  expect_samples(samples);
}

TEST(Gbnf, TheExampleOfVllmsDocumentation) {
  const Sample samples[] = {
      {"root ::= select_statement\n"
       "select_statement ::= \"SELECT \" column \" from \" table \" where \" condition\n"
       "column ::= \"col_1 \" | \"col_2 \"\ntable ::= \"table_1 \" | \"table_2 \"\n"
       "condition ::= column \"= \" number\nnumber ::= \"1 \" | \"2 \"\n",
       {"SELECT col_1  from table_1  where col_1 = 1 "},
       {"SELECT col_3"}},
  };
  expect_samples(samples);
}

TEST(Lark, ReadsTheSubsetThatWeTake) {
  const Sample samples[] = {
      {"start: \"a\"i (\"b\" | \"c\")* [\"d\"]\n", {"a", "Abcbd"}, {"d", "add"}},
      {"?start: expr\n?expr: term | expr \"+\" term -> add\nterm: NUMBER | \"(\" expr \")\"\n"
       "%import common.NUMBER\n%import common.WS\n%ignore WS\n",
       {"1", "1 + (2+3.5)", " 1\n+ 2 "},
       {"1 +", "(1"}},
      {"start: WORD~2..3\nWORD: \"a\"..\"c\" /[0-9]/\n", {"a1b2", "a1b2c3"}, {"a1", "d1d1"}},
      {"start: a\n  | b\na: \"x\"\nb: \"y\" // comment\n", {"x", "y"}, {"xy"}},
  };
  expect_samples(samples);
}

TEST(Notation, ErrorsSayWhereAndWhat) {
  for (const auto& [grammar, word] : std::initializer_list<std::pair<const char*, const char*>>{
           {"root ::= missing", "'missing'"},
           {"other ::= \"a\"", "no rule 'root'"},
           {"root ::= \"a", "line 1"},
           {"root ::= \"a\"\nroot ::= \"b\"", "defined twice"},
           {"root ::= (\"a\"", "')'"},
           {"root ::= [a", "']'"},
           {"root ::= a\na ::= b\nb ::= a \"x\" | \"y\"", "left recursion"},
           {"root ::= n root \"x\" | \"y\"\nn ::= \"\" | \"n\"", "left recursion"},
           {"root ::= root", "no output at all"},
           {"root ::= \"a\" root", "no output at all"},
           {"root ::= <think>", "by name"},
           {"root ::= \"\\q\"", "escape"},
           {"root ::= \"a\"{3,2}", "bounds"},
           {"start: \"a\" x{b}\n", "template"},
           {"start: a\n%declare A\n", "declare"},
           {"begin: \"a\"\n", "start"},
           {"root ::= \"a\" )", "end of the rule"},
       }) {
    const auto automaton = compiled_grammar(grammar);
    ASSERT_FALSE(automaton) << grammar;
    EXPECT_NE(automaton.error().message.find(word), std::string::npos)
        << grammar << ": " << automaton.error().message;
  }
}

TEST(Choice, AllowsExactlyTheChoices) {
  const auto automaton =
      compile(GrammarSource{.kind = GrammarSource::Kind::kChoice,
                            .text = "",
                            .choices = {"yes", "no", "not sure", "\xf0\x9f\xa6\x9c"}});
  ASSERT_TRUE(automaton) << automaton.error().message;
}

// Two readings of every bracket that only the end tells apart: the stacks must be shared.
TEST(Matcher, AmbiguityCostsNoExponentialTime) {
  const auto automaton = compiled_grammar(
      "root ::= x | y\nx ::= \"(\" inner \")\" \"x\"\ny ::= \"(\" inner \")\" \"y\"\n"
      "inner ::= x | y | \"\"\n");
  ASSERT_TRUE(automaton) << automaton.error().message;
  Matcher matcher(*automaton, small_vocabulary());
  MatchScratch scratch;
  std::string text(2000, '(');
  for (int i = 0; i < 2000; ++i) text += i % 3 ? ")x" : ")y";
  for (const char c : text) ASSERT_TRUE(matcher.accept(std::string_view(&c, 1), scratch));
  EXPECT_TRUE(matcher.must_end());
  matcher.check();
}

TEST(Matcher, ACopyGoesItsOwnWay) {
  const auto automaton = compiled_grammar("root ::= \"(\" root \")\" | [a-z]+");
  ASSERT_TRUE(automaton);
  Matcher first(*automaton, small_vocabulary());
  MatchScratch scratch;
  ASSERT_TRUE(first.accept("((a", scratch));
  Matcher second = first;
  ASSERT_TRUE(second.accept("))", scratch));
  EXPECT_TRUE(second.must_end());
  EXPECT_FALSE(first.may_end());
  ASSERT_TRUE(first.accept("bc))", scratch));
  EXPECT_TRUE(first.must_end());
  EXPECT_FALSE(first.accept("x", scratch));
  EXPECT_TRUE(first.must_end()) << "a refused token changes nothing";
}

TEST(Matcher, ForcedTextIsWhatMustFollow) {
  const auto automaton = compiled_grammar("root ::= \"name: \" (\"abc\" | \"abd\") \".\"");
  ASSERT_TRUE(automaton);
  Matcher matcher(*automaton, small_vocabulary());
  MatchScratch scratch;
  EXPECT_EQ(matcher.forced(100, scratch), "name: ab");
  EXPECT_EQ(matcher.forced(3, scratch), "nam");
  ASSERT_TRUE(matcher.accept("name: abd", scratch));
  EXPECT_EQ(matcher.forced(100, scratch), ".");
  ASSERT_TRUE(matcher.accept(".", scratch));
  EXPECT_EQ(matcher.forced(100, scratch), "");
}

TEST(Matcher, SpacesThatTheTokenizerDropsDoNotCount) {
  const auto automaton = compiled_grammar("root ::= \"the\" | \"hello\"");
  ASSERT_TRUE(automaton);
  const TokenTrie& trie = *small_vocabulary();
  Matcher matcher(*automaton, small_vocabulary());
  matcher.ignore_leading_spaces(1);
  MatchScratch scratch;
  std::vector<uint64_t> mask(trie.mask_words());
  matcher.fill_mask(mask, scratch);
  std::set<std::string> allowed;
  for (int32_t token = 0; token < trie.vocab_size(); ++token)
    if (mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1)
      allowed.emplace(trie.bytes(token));
  EXPECT_EQ(allowed, (std::set<std::string>{"t", "h", "the", "hello", " the"}));
  for (int32_t token = 0; token < trie.vocab_size(); ++token)
    if (trie.bytes(token) == " the") {
      ASSERT_TRUE(matcher.accept(token, scratch));
    }
  EXPECT_TRUE(matcher.must_end());
}

// Each token is in the mask if, and only if, its bytes can be read, whichever slice helps.
TEST(Matcher, MasksAgreeWithReadingEachToken) {
  for (const char* grammar :
       {"root ::= [a-z]+", "root ::= [a-zA-Z0-9_]{1,9} \"!\"", "root ::= [^\"]*", "root ::= .{0,3}",
        "root ::= (\"a\" | \"ab\")* \"\\n\"", "root ::= [a-z]{30} \"x\" root | \"y\"",
        "root ::= \"\\\"\" [^\\\\\"\\x00-\\x1f]* \"\\\"\" (\",\" root)?"}) {
    const auto automaton = compiled_grammar(grammar);
    ASSERT_TRUE(automaton) << grammar << automaton.error().message;
    const TokenTrie& trie = *small_vocabulary();
    Matcher matcher(*automaton, small_vocabulary());
    MatchScratch scratch;
    std::vector<uint64_t> mask(trie.mask_words());
    std::mt19937 random(1);
    for (int i = 0; i < 40; ++i) {
      matcher.fill_mask(mask, scratch);
      std::vector<int32_t> allowed;
      for (int32_t token = 0; token < trie.vocab_size(); ++token) {
        const bool bit = mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1;
        Matcher copy = matcher;
        ASSERT_EQ(copy.accept(token, scratch), bit) << grammar << " token " << trie.bytes(token);
        if (bit) allowed.push_back(token);
      }
      if (allowed.empty()) break;
      ASSERT_TRUE(matcher.accept(allowed[random() % allowed.size()], scratch));
    }
  }
}

}  // namespace
}  // namespace weir::sample::grammar
