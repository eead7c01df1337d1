// GBNF and Lark grammars, choices, and grammars that are recursive or ambiguous.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "grammar/source.h"
#include "matching.h"

namespace weir::grammar {
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

TEST(Lark, WithinAJsonStringIsSpelledSo) {
  auto automaton = compile(GrammarSource{
      .kind = GrammarSource::Kind::kParts,
      .text =
          R"({"seq":[{"text":"\""},{"source":{"kind":4,"text":"start: \"*** \\\"\" line+\nline: )"
          R"(\"+\" /(.*)/ LF\n%import common.LF"},"in_string":true},{"text":"\""}]})",
      .choices = {}});
  ASSERT_TRUE(automaton) << automaton.error().message;
  const std::shared_ptr<const Automaton> shared = std::move(*automaton);
  EXPECT_TRUE(matches(shared, R"("*** \"+a\n")"));
  EXPECT_TRUE(matches(shared, R"("*** \"+tab\t and \\ and \"\n+\n")"));
  EXPECT_FALSE(matches(shared, "\"*** \\\"+a\n\""));  // A line feed as it is.
  EXPECT_FALSE(matches(shared, R"("*** "+a\n")"));
  EXPECT_FALSE(matches(shared, R"("*** \"a\n")"));
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

// Words of all lengths, with and without a space before them, numbers, marks, characters of two to
// four bytes, and mixtures of all that.
std::shared_ptr<const TokenTrie> large_vocabulary() {
  std::mt19937 random(3);
  const auto pick = [&](size_t n) { return random() % n; };
  static constexpr const char* kCharacters[] = {"a",
                                                "b",
                                                "c",
                                                "e",
                                                "n",
                                                "t",
                                                "z",
                                                "A",
                                                "Z",
                                                "_",
                                                "0",
                                                "9",
                                                " ",
                                                ".",
                                                "!",
                                                "<",
                                                ",",
                                                "\"",
                                                "\\",
                                                "\n",
                                                "\t",
                                                "\xc3\xa9",
                                                "\xe6\x97\xa5",
                                                "\xe2\x80\xa8",
                                                "\xf0\x9f\xa6\x9c"};
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
  while (texts.size() < 1400) {
    // Lower case only, letters, words, text, anything.
    static constexpr size_t kKinds[] = {7, 9, 12, 17, std::size(kCharacters)};
    const size_t kind = kKinds[pick(std::size(kKinds))];
    std::string text = pick(3) == 0 ? " " : "";
    for (size_t length = 1 + pick(pick(4) == 0 ? 30 : 6); length > 0; --length)
      text += kCharacters[pick(kind)];
    texts.push_back(std::move(text));
  }
  return std::make_shared<const TokenTrie>(
      std::vector<std::string_view>(texts.begin(), texts.end()));
}

// Each token is in the mask if, and only if, its bytes can be read, whichever slice helps and
// whatever is remembered.
void check_mask(const Matcher& matcher, const std::vector<uint64_t>& mask, MatchScratch& scratch,
                std::vector<int32_t>& allowed) {
  allowed.clear();
  for (int32_t token = 0; token < matcher.trie().vocab_size(); ++token) {
    const bool bit = mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1;
    Matcher copy = matcher;
    ASSERT_EQ(copy.accept(token, scratch), bit) << "token " << matcher.trie().bytes(token);
    if (bit) allowed.push_back(token);
  }
}

void check_masks(const std::string& grammar, const std::shared_ptr<const TokenTrie>& trie,
                 unsigned seed, int steps) {
  SCOPED_TRACE(grammar);
  const auto automaton = compiled_grammar(grammar);
  ASSERT_TRUE(automaton) << grammar << automaton.error().message;
  Matcher matcher(*automaton, trie);
  MatchScratch scratch;
  std::vector<uint64_t> mask(trie->mask_words());
  std::mt19937 random(seed);
  for (int i = 0; i < steps; ++i) {
    matcher.fill_mask(mask, scratch);
    std::vector<int32_t> allowed;
    check_mask(matcher, mask, scratch, allowed);
    if (allowed.empty()) break;
    ASSERT_TRUE(matcher.accept(allowed[random() % allowed.size()], scratch));
    matcher.check();
  }
}

TEST(Matcher, MasksAgreeWithReadingEachToken) {
  for (const char* grammar :
       {"root ::= [a-z]+", "root ::= [a-zA-Z0-9_]{1,9} \"!\"", "root ::= [^\"]*", "root ::= .{0,3}",
        "root ::= (\"a\" | \"ab\")* \"\\n\"", "root ::= [a-z]{30} \"x\" root | \"y\"",
        "root ::= \"\\\"\" [^\\\\\"\\x00-\\x1f]* \"\\\"\" (\",\" root)?"})
    check_masks(grammar, small_vocabulary(), 1, 40);
}

TEST(Matcher, MasksAgreeWithReadingEachTokenOfALargeVocabulary) {
  const auto vocabulary = large_vocabulary();
  for (const char* grammar : {
           "root ::= [^<]* \"<\" root?",
           "root ::= \"\\\"\" [^\\\\\"\\x00-\\x1f]{0,130} \"\\\"\" (\",\" root)?",
           "root ::= \"\\\"\" [^\\\\\"\\x00-\\x1f]{70,95} \"\\\"\" (\",\" root)?",
           "root ::= [a-zA-Z0-9_]{3000,} \"!\"",
           "root ::= ([a-z]{1,90} | [a-n ]{5,100} | \" \"? [a-zA-Z]{0,200}) \"!\" root?",
           "root ::= ([a-z_]{150,170} \".\"){2,3}",
           "root ::= w | w \".\" root\nw ::= [a-z]+ | [a-c]+ w | [ -~]{1,40} \"!\"",
           "root ::= \"(\" root \")\" | [a-z ]* | root \",\" root",
           "root ::= (\"a\"? \"b\"? [a-z ]? \"t\"?){60}",
       })
    for (unsigned seed = 0; seed < 2; ++seed) check_masks(grammar, vocabulary, seed, 60);
}

// What another grammar's walk has left in memory: its states are none of this grammar's. Five
// shapes are open at once, so that every byte takes a whole step, and most lead nowhere.
TEST(Matcher, MasksAreMadeWhateverTheLastGrammarHasLeft) {
  const std::string shapes =
      "shape ::= a | b | c | d | e\n"
      "a ::= \"(\" a \")\" | \"1\"\nb ::= \"(\" b \")\" | \"2\"\nc ::= \"(\" c \")\" | \"3\"\n"
      "d ::= \"(\" d \")\" | \"4\"\ne ::= \"(\" e \")\" | \"5\"\n";
  const auto small = compiled_grammar("root ::= shape\n" + shapes);
  ASSERT_TRUE(small);
  MatchScratch used, fresh;
  Matcher matcher(*small, small_vocabulary());
  ASSERT_TRUE(matcher.accept("(((", fresh));
  std::vector<uint64_t> mask(small_vocabulary()->mask_words()), expected(mask);
  Matcher(matcher).fill_mask(expected, fresh);
  {
    const std::string before(200'000, 'y');  // So that the shapes' states have high numbers.
    const auto large = compiled_grammar("root ::= before shape | before root\nbefore ::= \"" +
                                        before + "\" | before \"y\"\n" + shapes);
    ASSERT_TRUE(large);
    Matcher left(*large, small_vocabulary());
    ASSERT_TRUE(left.accept(before + "((", fresh));
    left.fill_mask(mask, used);
  }
  matcher.fill_mask(mask, used);
  EXPECT_EQ(mask, expected);
}

// Every number of characters that may be left decides which slice applies.
TEST(Matcher, MasksAgreeWithReadingEachTokenAtEveryDistanceFromALimit) {
  const auto vocabulary = large_vocabulary();
  for (int limit = 515; limit < 545; limit += 3) {
    const std::string grammar = "root ::= [^\"\\\\\\x00-\\x1f]{0," + std::to_string(limit) + "}";
    SCOPED_TRACE(grammar);
    const auto automaton = compiled_grammar(grammar);
    ASSERT_TRUE(automaton) << automaton.error().message;
    Matcher matcher(*automaton, vocabulary);
    MatchScratch scratch;
    ASSERT_TRUE(matcher.accept(std::string(static_cast<size_t>(limit) - 40, 'a'), scratch));
    std::vector<uint64_t> mask(vocabulary->mask_words());
    std::vector<int32_t> allowed;
    do {
      matcher.fill_mask(mask, scratch);
      check_mask(matcher, mask, scratch, allowed);
    } while (matcher.accept("a", scratch));
  }
}

// Hundreds of rules that all begin the same way, many tokens that almost can come, and the one that
// can behind all of them: the bound is spent before it is reached.
TEST(Matcher, AMaskWhoseBoundIsSpentStillHasAToken) {
  std::string grammar = "root ::= r0";
  for (int i = 1; i < 900; ++i) grammar += " | r" + std::to_string(i);
  for (int i = 0; i < 900; ++i) {
    const std::string rule = "r" + std::to_string(i);
    grammar +=
        "\n" + rule + " ::= \"x\" [a-e] \"\u00ff\" " + rule + "? \"" + std::to_string(i) + "\"";
  }
  const auto automaton = compiled_grammar(grammar);
  ASSERT_TRUE(automaton) << automaton.error().message;
  std::vector<std::string> texts;
  for (int byte = 0; byte < 256; ++byte) {
    const char last = static_cast<char>(byte);
    if (last != 'x') texts.emplace_back(1, last);
    for (const char letter : std::string_view("abcde"))
      if (last != '\xc3' || letter == 'e') texts.push_back({'x', letter, last});
  }
  const auto trie =
      std::make_shared<const TokenTrie>(std::vector<std::string_view>(texts.begin(), texts.end()));
  Matcher matcher(*automaton, trie);
  MatchScratch scratch;
  std::vector<uint64_t> mask(trie->mask_words());
  matcher.fill_mask(mask, scratch);
  EXPECT_LE(scratch.work_left(), 0);
  int allowed = 0;
  for (int32_t token = 0; token < trie->vocab_size(); ++token) {
    if (!(mask[static_cast<size_t>(token) / 64] >> (token % 64) & 1)) continue;
    ++allowed;
    Matcher copy = matcher;
    EXPECT_TRUE(copy.accept(token, scratch)) << trie->bytes(token);
  }
  EXPECT_EQ(allowed, 1);
}

TEST(Matcher, MasksAreRightWhenStacksAreRenumbered) {
  const auto automaton = compiled_grammar(
      "root ::= item (\",\" item)*\n"
      "item ::= \"(\" item* \")\" | \"[\" item* \"]\" | \"{\" item* \"}\" | \"a\"");
  ASSERT_TRUE(automaton) << automaton.error().message;
  // Hardly anything is closed: then the numbers change by so little that one may stand for another.
  for (unsigned seed = 0; seed < 40; ++seed) {
    Matcher matcher(*automaton, small_vocabulary());
    MatchScratch scratch;
    std::vector<uint64_t> mask(matcher.trie().mask_words());
    std::mt19937 random(seed);
    std::string open;
    for (int i = 0; i < 1200; ++i) {
      const size_t kind = random() % 3;
      const bool close = !open.empty() && random() % 900 == 0;
      const char c = close ? open.back() : "([{"[kind];
      ASSERT_TRUE(matcher.accept(std::string_view(&c, 1), scratch));
      if (close)
        open.pop_back();
      else
        open += ")]}"[kind];
      matcher.fill_mask(mask, scratch);
      for (const char end : std::string_view(")]}"))  // Tokens 0 to 255 are the bytes.
        ASSERT_EQ(mask[static_cast<size_t>(end) / 64] >> (end % 64) & 1, end == open.back())
            << "seed " << seed << " step " << i;
    }
    matcher.check();
  }
}

}  // namespace
}  // namespace weir::grammar
