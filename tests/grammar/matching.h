// Helpers of the grammar tests: a small vocabulary, and texts against compiled grammars.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/compiler.h"
#include "grammar/matcher.h"
#include "grammar/regex.h"
#include "grammar/token_trie.h"

namespace weir::grammar {

// All bytes, and some longer tokens as real vocabularies have them.
inline const std::shared_ptr<const TokenTrie>& small_vocabulary() {
  static const std::shared_ptr<const TokenTrie> trie = [] {
    static std::vector<std::string> texts;
    for (int byte = 0; byte < 256; ++byte) texts.emplace_back(1, static_cast<char>(byte));
    for (const char* text :
         {"",         "{\"",   "\":",    "\": \"",   "\",",          "\", \"",   "\"}",
          "\"]",      "},",    "}}",     "]}",       "{}",           "[]",       "  ",
          "\n  ",     "ab",    "abc",    "the",      " the",         "name",     "type",
          "true",     "false", "null",   "tru",      "12",           "123",      "-1",
          "0.",       "\\n",   "\\u00",  "\xc3\xa9", "\xe6\x97\xa5", "\xe6\x97", "\xf0\x9f\xa6",
          "\xa6\x9c", "hello", " world", "\"name\"", "ab",           ", \"",     ": ",
          ", ",       "20",    "2024",   "-01"})
      texts.emplace_back(text);
    return std::make_shared<const TokenTrie>(
        std::vector<std::string_view>(texts.begin(), texts.end()));
  }();
  return trie;
}

inline std::shared_ptr<const Automaton> compiled(Grammar grammar) {
  auto automaton = compile(std::move(grammar));
  EXPECT_TRUE(automaton.has_value()) << automaton.error().message;
  return automaton ? std::shared_ptr<const Automaton>(std::move(*automaton)) : nullptr;
}

// True if the whole text is in the language, read byte by byte.
inline bool matches(const std::shared_ptr<const Automaton>& automaton, std::string_view text) {
  Matcher matcher(automaton, small_vocabulary());
  MatchScratch scratch;
  for (const char c : text)
    if (!matcher.accept(std::string_view(&c, 1), scratch)) return false;
  matcher.check();
  return matcher.may_end();
}

inline Result<std::shared_ptr<const Automaton>> compiled_regex(
    std::string_view pattern, Spelling spelling = Spelling::kPlain,
    RegexMatch match = RegexMatch::kWhole) {
  Grammar grammar;
  grammar.root = grammar.add_rule("root");
  WEIR_ASSIGN(const ExprId body, regex(grammar, pattern, spelling, match));
  grammar.define(grammar.root, body);
  WEIR_ASSIGN(auto automaton, compile(std::move(grammar)));
  return std::shared_ptr<const Automaton>(std::move(automaton));
}

}  // namespace weir::grammar
