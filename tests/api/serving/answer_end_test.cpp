// The token that a chat template writes after an answer. (format_test.cpp has the texts that the
// templates of the fixtures write.)
#include "api/serving/answer_end.h"

#include <gtest/gtest.h>

#include "../test_api.h"

namespace weir::api {
namespace {

std::optional<int32_t> end_of(const std::string& source) {
  const auto parsed = text::ChatTemplate::parse(source);
  EXPECT_TRUE(parsed) << parsed.error().message;
  const auto tokenizer = text::Tokenizer::load(byte_tokenizer_json());
  EXPECT_TRUE(tokenizer) << tokenizer.error().message;
  return answer_end(*parsed, {{"eos_token", "<end>"}}, **tokenizer);
}

TEST(AnswerEnd, IsTheTokenAfterTheWords) {
  EXPECT_EQ(end_of("{% for m in messages %}[{{ m.role }}]{{ m.content }}<mark>\n{% endfor %}"),
            kMark);
  EXPECT_EQ(end_of("{% for m in messages %}{{ m.content }}\n{{ eos_token }}<mark>{% endfor %}"),
            kEnd);
}

TEST(AnswerEnd, IsNoneWhereNoTokenComesFirst) {
  EXPECT_EQ(end_of("{% for m in messages %}{{ m.content }}{% endfor %}"), std::nullopt);
  EXPECT_EQ(end_of("{% for m in messages %}{{ m.content }}, <mark>{% endfor %}"), std::nullopt);
  EXPECT_EQ(end_of("{{ raise_exception('never') }}"), std::nullopt);
  EXPECT_EQ(end_of("{{ messages[0].content }}<mark>"), std::nullopt);
}

TEST(AnswerEnd, IsNothingThatAnAnswerHoldsBeforeItsEnd) {
  const char* words = "{% for m in messages %}{{ m.content }}<|end|>{% endfor %}";
  std::string json = byte_tokenizer_json();
  json.replace(json.find("<mark>"), 6, "<|end|>");
  const auto tokenizer = text::Tokenizer::load(json);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto plain = text::ChatTemplate::parse(words);
  EXPECT_EQ(answer_end(*plain, {}, **tokenizer), kMark);
  const auto thinking = text::ChatTemplate::parse(std::string(words) + "{# assistant<|think|> #}");
  EXPECT_EQ(answer_end(*thinking, {}, **tokenizer), std::nullopt);
}

}  // namespace
}  // namespace weir::api
