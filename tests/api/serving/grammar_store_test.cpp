// What grammars cost: the tries of a vocabulary, and the automata that are kept.
#include "api/serving/grammar_store.h"

#include <gtest/gtest.h>

#include "api/memory/memory_cost.h"
#include "text/tokenizer_fixture.h"

namespace weir::api {
namespace {

using grammar::GrammarSource;
using grammar::TokenTrie;

// About 3 KB each, all different.
GrammarSource choices(int number) {
  GrammarSource source{.kind = GrammarSource::Kind::kChoice, .text = {}, .choices = {}};
  for (int i = 0; i < 10; ++i)
    source.choices.push_back("choice " + std::to_string(number) + " of " + std::to_string(i));
  return source;
}

TEST(GrammarStore, TriesTakeWhatThePlanCountsOn) {
  std::vector<std::string> texts{text::own_tokenizer_json()};
  if (const auto folder = text::shared_model("smollm2-135m-instruct-4bit"); !folder.empty())
    texts.push_back(text::file_text(folder + "/tokenizer.json"));
  for (const std::string& json : texts) {
    const auto tokenizer = text::load_tokenizer(json);
    ASSERT_TRUE(tokenizer);
    std::vector<std::string_view> pieces;
    for (int32_t id = 0; id < tokenizer->vocab_size(); ++id) pieces.push_back(tokenizer->piece(id));
    const size_t bytes = kTries * TokenTrie(pieces).memory_bytes();
    EXPECT_LE(bytes, trie_bytes(tokenizer->vocab_size()));
    EXPECT_GE(bytes, trie_bytes(tokenizer->vocab_size()) / 2) << "the plan asks for too much";
  }
}

TEST(GrammarStore, KeepsNoMoreAutomataThanItMay) {
  const auto tokenizer = text::load_tokenizer(text::own_tokenizer_json());
  ASSERT_TRUE(tokenizer);
  const std::vector<int32_t> markers{tokenizer->vocab_size() - 1};
  for (const auto& marked : {std::vector<int32_t>{}, markers}) {
    constexpr size_t kBytesMax = 60'000;
    GrammarStore store(*tokenizer, tokenizer->vocab_size(), {0}, kBytesMax, marked);
    size_t most = 0;
    for (int number = 0; number < 60; ++number) {
      for (const bool with_markers : {false, true})
        ASSERT_TRUE(store.matcher(choices(number), false, with_markers));
      most = std::max(most, store.automata_bytes());
      ASSERT_LE(most, kBytesMax);
    }
    EXPECT_GT(most, kBytesMax / 2) << "the limit was never near";
  }
}

TEST(GrammarStore, WorksWithoutRoomForAny) {
  const auto tokenizer = text::load_tokenizer(text::own_tokenizer_json());
  ASSERT_TRUE(tokenizer);
  GrammarStore store(*tokenizer, tokenizer->vocab_size(), {0}, 0);
  const auto matcher = store.matcher(choices(1), false);
  ASSERT_TRUE(matcher);
  EXPECT_FALSE((*matcher)->may_end());
  EXPECT_EQ(store.automata_bytes(), 0u);
}

}  // namespace
}  // namespace weir::api
