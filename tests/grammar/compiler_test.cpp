// Compiled grammars beside the definition of their languages (language.h): random grammars, rules
// that call themselves among them, and every short text over a small alphabet.
#include "grammar/compiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "grammar/machine.h"
#include "language.h"
#include "matching.h"

namespace weir::grammar {
namespace {

const std::vector<std::string>& short_texts() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> all{""};
    for (size_t i = 0; all[i].size() < 5; ++i)
      for (const char c : {'a', 'b', 'c'}) all.push_back(all[i] + c);
    return all;
  }();
  return texts;
}

// Which of the short texts a matcher takes.
std::vector<bool> taken(const std::shared_ptr<const Automaton>& automaton) {
  std::vector<bool> result;
  MatchScratch scratch;
  for (const std::string& text : short_texts()) {
    Matcher matcher(automaton, small_vocabulary());
    result.push_back(matcher.accept(text, scratch) && matcher.may_end());
  }
  return result;
}

std::vector<bool> defined(const Grammar& grammar, ExprId expr) {
  std::vector<bool> result;
  Language language(grammar);
  for (const std::string& text : short_texts()) result.push_back(language.holds(expr, text));
  return result;
}

ExprId root_of(const Grammar& grammar) {
  return grammar.rules()[static_cast<size_t>(grammar.root)].body;
}

std::string texts_of(const std::vector<bool>& which) {
  std::string told;
  for (size_t i = 0; i < which.size(); ++i)
    if (which[i]) told += "'" + short_texts()[i] + "' ";
  return told;
}

class RandomGrammar {
 public:
  explicit RandomGrammar(unsigned number) : random_(number) {}

  // Rules that call one another; with `recursive`, also those before them and themselves.
  Grammar make(bool recursive) {
    const size_t rules = 1 + pick(4);
    for (size_t i = 0; i < rules; ++i) grammar_.add_rule("r" + std::to_string(i), pick(3) == 0);
    for (size_t i = 0; i < rules; ++i) {
      first_rule_ = recursive ? 0 : i + 1;
      grammar_.define(static_cast<RuleId>(i), expr(3));
    }
    grammar_.root = 0;
    return std::move(grammar_);
  }

 private:
  size_t pick(size_t count) { return static_cast<size_t>(random_() % count); }

  ExprId expr(int depth) {
    switch (depth == 0 ? pick(3) : pick(10)) {
      case 0: {
        const auto first = static_cast<uint16_t>('a' + pick(3));
        return grammar_.symbols(first,
                                static_cast<uint16_t>(std::min<size_t>(first + pick(2), 'c')));
      }
      case 1:
        return grammar_.literal(std::vector{"", "a", "ab", "bca", "cc"}[pick(5)]);
      case 2:
      case 3:
        if (first_rule_ < grammar_.rules().size())
          return grammar_.rule(
              static_cast<RuleId>(first_rule_ + pick(grammar_.rules().size() - first_rule_)));
        return grammar_.characters(pick(2) == 0 ? CharSet{{'a', 'b'}} : CharSet{{'b', 0x10ffff}});
      case 4:
      case 5:
        return grammar_.concat({expr(depth - 1), expr(depth - 1), expr(depth - 1)});
      case 6:
      case 7:
        return grammar_.any({expr(depth - 1), expr(depth - 1)});
      case 8: {
        const auto min = static_cast<int32_t>(pick(3));
        const int32_t max = pick(3) == 0 ? kUnbounded : min + static_cast<int32_t>(pick(3));
        return grammar_.repeat(expr(depth - 1), min, max);
      }
      default:
        return list(depth);
    }
  }

  ExprId list(int depth) {
    List made;
    made.separator = grammar_.literal(pick(2) == 0 ? "c" : "b");
    for (size_t i = pick(4); i > 0; --i)
      made.items.push_back({.expr = expr(depth - 1), .required = pick(2) == 0});
    if (pick(2) == 0) made.rest = expr(depth - 1);
    made.not_empty = pick(4) == 0;
    if (pick(2) == 0) {
      made.min = static_cast<int32_t>(pick(3));
      if (pick(2) == 0) made.max = made.min + static_cast<int32_t>(pick(3));
    }
    return grammar_.list(made);
  }

  std::mt19937 random_;
  Grammar grammar_;
  size_t first_rule_ = 0;
};

TEST(Compiler, AcceptsWhatTheGrammarDefines) {
  int compared = 0, texts = 0, refused = 0;
  for (unsigned number = 0; number < 500; ++number) {
    const Grammar grammar = RandomGrammar(number).make(true);
    const std::vector<bool> expected = defined(grammar, root_of(grammar));
    auto automaton = compile(grammar);
    if (!automaton) {
      const std::string& why = automaton.error().message;
      if (why.find("left recursion") != std::string::npos) {
        ++refused;
      } else {
        ASSERT_NE(why.find("no output"), std::string::npos) << why;
        ASSERT_EQ(texts_of(expected), "") << "grammar " << number;
      }
      continue;
    }
    const std::shared_ptr<const Automaton> shared = std::move(*automaton);
    ASSERT_EQ(texts_of(taken(shared)), texts_of(expected)) << "grammar " << number;
    ++compared;
    texts += static_cast<int>(std::ranges::count(expected, true));
  }
  EXPECT_GT(compared, 200);
  EXPECT_GT(texts, 1'000);
  EXPECT_LT(refused, 300);
}

TEST(Compiler, WrittenOutAnExpressionIsTheSame) {
  for (unsigned number = 1000; number < 1300; ++number) {
    Grammar grammar = RandomGrammar(number).make(false);
    const std::vector<bool> expected = defined(grammar, root_of(grammar));
    const auto dfa = machine_of(grammar, root_of(grammar));
    ASSERT_TRUE(dfa.has_value()) << dfa.error().message;
    std::vector<bool> accepted;
    for (const std::string& text : short_texts()) accepted.push_back(dfa->accepts(text));
    ASSERT_EQ(texts_of(accepted), texts_of(expected)) << "grammar " << number;
  }
}

Grammar grammar_of(ExprId (*make)(Grammar&)) {
  Grammar grammar;
  grammar.root = grammar.add_rule("root");
  grammar.define(grammar.root, make(grammar));
  return grammar;
}

std::string refusal(Grammar grammar) {
  auto automaton = compile(std::move(grammar));
  return automaton ? "" : automaton.error().message;
}

TEST(Compiler, RulesThatNestAreMatchedToAnyDepth) {
  const auto automaton = compiled(grammar_of([](Grammar& g) {
    return g.any({g.empty(), g.concat({g.literal("a"), g.rule(g.root), g.literal("b")})});
  }));
  for (int depth = 0; depth <= 200; ++depth) {
    const std::string opened(static_cast<size_t>(depth), 'a');
    const std::string closed(static_cast<size_t>(depth), 'b');
    EXPECT_TRUE(matches(automaton, opened + closed)) << depth;
    EXPECT_FALSE(matches(automaton, opened + closed + "b")) << depth;
    EXPECT_FALSE(matches(automaton, "a" + opened + closed)) << depth;
  }
}

TEST(Compiler, DirectLeftRecursionIsARepetition) {
  const Grammar grammar = grammar_of([](Grammar& g) {
    const ExprId self = g.rule(g.root);
    return g.any({g.concat({self, g.literal("a"), g.literal("b")}), self, g.literal("c"),
                  g.any({g.concat({self, g.literal("b")}), g.literal("a")})});
  });
  EXPECT_EQ(texts_of(taken(compiled(grammar))), texts_of(defined(grammar, root_of(grammar))));
}

TEST(Compiler, OtherLeftRecursionIsRefusedByItsRulesName) {
  Grammar grammar;
  grammar.root = grammar.add_rule("first");
  const RuleId second = grammar.add_rule("second");
  grammar.define(grammar.root, grammar.any({grammar.rule(second), grammar.literal("a")}));
  grammar.define(second, grammar.concat({grammar.optional(grammar.literal("b")),
                                         grammar.rule(grammar.root), grammar.literal("c")}));
  const std::string why = refusal(grammar);
  EXPECT_NE(why.find("left recursion"), std::string::npos) << why;
  EXPECT_TRUE(why.find("'first'") != std::string::npos ||
              why.find("'second'") != std::string::npos);
  // The same with something that is always read before.
  grammar.define(second, grammar.concat({grammar.literal("b"), grammar.rule(grammar.root),
                                         grammar.literal("c")}));
  EXPECT_EQ(texts_of(taken(compiled(grammar))), texts_of(defined(grammar, root_of(grammar))));
}

TEST(Compiler, WhatCannotBeMatchedIsRefused) {
  EXPECT_NE(refusal(grammar_of([](Grammar& g) { return g.nothing(); })).find("no output"),
            std::string::npos);
  EXPECT_NE(refusal(grammar_of([](Grammar& g) {
              return g.concat({g.literal("a"), g.rule(g.root)});
            })).find("no output"),
            std::string::npos)
      << "a rule without an end";
  EXPECT_NE(refusal(grammar_of([](Grammar& g) {
              return g.any({g.literal("a"), g.rule(g.add_rule("missing"))});
            })).find("'missing'"),
            std::string::npos);
}

TEST(Compiler, WhatIsLeftOfTheBudgetIsTold) {
  Budget left;
  ASSERT_TRUE(compile(grammar_of([](Grammar& g) { return g.literal("abc"); }), &left).has_value());
  EXPECT_EQ(left.states, Budget{}.states - 4);
  EXPECT_LT(left.work, Budget{}.work);
  Grammar poor = grammar_of([](Grammar& g) { return g.literal("abc"); });
  poor.budget.states = 3;
  EXPECT_NE(refusal(poor).find("too complex"), std::string::npos);
  poor.budget.states = 4;
  EXPECT_EQ(refusal(poor), "");
}

}  // namespace
}  // namespace weir::grammar
