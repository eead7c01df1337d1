#include "grammar/forced_tokens.h"

#include <gtest/gtest.h>

#include "grammar/source.h"
#include "matching.h"

namespace weir::grammar {
namespace {

// The longest token that fits, as long as there is one: an ending may always become another token.
std::vector<int32_t> longest_first(std::string_view text) {
  const TokenTrie& trie = *small_vocabulary();
  std::vector<int32_t> tokens;
  while (!text.empty()) {
    int32_t best = static_cast<uint8_t>(text.front());
    for (int32_t token = 256; token < trie.vocab_size(); ++token)
      if (!trie.bytes(token).empty() && text.starts_with(trie.bytes(token)) &&
          trie.bytes(token).size() > trie.bytes(best).size())
        best = token;
    tokens.push_back(best);
    text.remove_prefix(trie.bytes(best).size());
  }
  return tokens;
}

std::vector<std::string> forced_behind(std::string_view regex, std::string_view text) {
  auto automaton = compile(GrammarSource{
      .kind = GrammarSource::Kind::kRegex, .text = std::string(regex), .choices = {}});
  EXPECT_TRUE(automaton.has_value());
  add_forced_tokens(**automaton, *small_vocabulary(), longest_first);
  Matcher matcher(std::move(*automaton), small_vocabulary());
  MatchScratch scratch;
  EXPECT_TRUE(matcher.accept(text, scratch));
  std::vector<std::string> texts;
  for (const int32_t token : matcher.forced_tokens()) {
    texts.emplace_back(small_vocabulary()->bytes(token));
    EXPECT_TRUE(matcher.accept(token, scratch));
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(ForcedTokens, AreTheTokenizersOwn) {
  EXPECT_EQ(forced_behind("[xy]helloname#[0-9]+", "x"), (Texts{"hello", "name", "#"}));
  EXPECT_EQ(forced_behind("[xy]helloname#[0-9]+", "xh"), (Texts{"e", "l", "l", "o", "name", "#"}));
}

TEST(ForcedTokens, EndBeforeWhatMayBecomeAnotherToken) {
  // `":` may become `": `, and a quote `", `.
  EXPECT_EQ(forced_behind("[xy]helloname\":[0-9]+", "x"), (Texts{"hello", "name"}));
  EXPECT_EQ(forced_behind("[xy]helloname\"[,}]", "x"), (Texts{"hello", "name"}));
}

TEST(ForcedTokens, AreNoneWhereThereIsAChoiceOrAnEnd) {
  EXPECT_EQ(forced_behind("[xy]helloname#[0-9]+", ""), Texts{});
  EXPECT_EQ(forced_behind("x(hello|the)name#", "x"), Texts{});
  EXPECT_EQ(forced_behind("x(helloname#)?", "x"), Texts{});
  EXPECT_EQ(forced_behind("x(helloname#)*", "x"), Texts{});
}

TEST(ForcedTokens, OneAloneIsSampled) { EXPECT_EQ(forced_behind("[xy]hello[0-9]", "x"), Texts{}); }

TEST(ForcedTokens, AreWholeCharacters) {
  // Two characters that begin with the same bytes.
  EXPECT_EQ(forced_behind("[xy]hello#[\xe6\x97\xa5\xe6\x97\xa6]", "x"), (Texts{"hello", "#"}));
}

}  // namespace
}  // namespace weir::grammar
