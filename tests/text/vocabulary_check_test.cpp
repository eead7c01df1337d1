#include "text/vocabulary_check.h"

#include <gtest/gtest.h>

#include <memory>

#include "base/concat.h"

namespace weir::text {
namespace {

std::unique_ptr<Tokenizer> tokenizer_with(std::string_view parts) {
  auto tokenizer = Tokenizer::load(concat(
      {R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, )", parts, "}"}));
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return tokenizer ? std::move(*tokenizer) : nullptr;
}

constexpr std::string_view kAdded = R"("added_tokens": [
    {"id": 2, "content": "<s>", "special": true}, {"id": 3, "content": "<pad>", "special": true}])";

TEST(VocabularyCheck, NamesTheFirstTokenThatTheModelLacks) {
  const auto tokenizer = tokenizer_with(kAdded);
  ASSERT_NE(tokenizer, nullptr);
  const std::vector<int32_t> ids = tokenizer->encode("ab<s>a<pad>");
  EXPECT_TRUE(check_tokens(ids, *tokenizer, 4));
  const auto checked = check_tokens(ids, *tokenizer, 2);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message,
            "tokenizer.json: token 2 '<s>': expected an id below the model's vocab_size 2");
}

TEST(VocabularyCheck, RefusesATokenThatSurroundsEveryText) {
  const auto tokenizer = tokenizer_with(concat(
      {kAdded,
       R"(, "post_processor": {"type": "BertProcessing", "cls": ["a", 0], "sep": ["<s>", 2]})"}));
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_TRUE(check_vocabulary(*tokenizer, 3));
  const auto checked = check_vocabulary(*tokenizer, 2);
  ASSERT_FALSE(checked);
  EXPECT_NE(checked.error().message.find("token 2 '<s>'"), std::string::npos)
      << checked.error().message;
  EXPECT_NE(checked.error().message.find("post_processor"), std::string::npos);
}

TEST(VocabularyCheck, WarnsOfTokensThatNoTextMayHave) {
  const auto tokenizer = tokenizer_with(kAdded);
  ASSERT_NE(tokenizer, nullptr);
  EXPECT_EQ(*check_vocabulary(*tokenizer, 4), "");
  const auto warning = check_vocabulary(*tokenizer, 2);
  ASSERT_TRUE(warning);
  EXPECT_NE(
      warning->find("no row for 2 tokens of tokenizer.json, beyond vocab_size 2: token 2 '<s>'"),
      std::string::npos)
      << *warning;
}

}  // namespace
}  // namespace weir::text
