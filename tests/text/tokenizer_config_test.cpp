#include "text/tokenizer_config.h"

#include <gtest/gtest.h>

#include <span>

namespace weir::text {
namespace {

ModelFiles::Embedded file(std::string_view name, std::string_view text) {
  return {name, std::as_bytes(std::span(text.data(), text.size()))};
}

ModelFiles files(std::vector<ModelFiles::Embedded> list) {
  return ModelFiles::embedded("model", std::move(list));
}

TEST(TokenizerConfig, HasNothingWhereTheModelHasNoSuchFile) {
  const auto config = read_tokenizer_config(files({}));
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->chat_template, std::nullopt);
  EXPECT_TRUE(config->special_tokens.empty());
}

TEST(TokenizerConfig, ReadsTokensAsStringsAndAsObjects) {
  const auto config = read_tokenizer_config(
      files({file("tokenizer_config.json",
                  R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>",
                      "pad_token": null, "chat_template": "{{ messages }}"})"),
             file("special_tokens_map.json", R"({"eos_token": "other", "unk_token": "<unk>"})")}));
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(*config->special_token("bos_token"), "<s>");
  EXPECT_EQ(*config->special_token("eos_token"), "</s>") << "tokenizer_config.json wins";
  EXPECT_EQ(*config->special_token("unk_token"), "<unk>");
  EXPECT_EQ(config->special_token("pad_token"), nullptr);
  EXPECT_EQ(config->chat_template, "{{ messages }}");
}

TEST(TokenizerConfig, PrefersTheJinjaFileAndReadsNamedTemplates) {
  const std::string_view list =
      R"({"chat_template": [{"name": "default", "template": "a"},
                            {"name": "tool_use", "template": "b"}]})";
  auto config = read_tokenizer_config(files({file("tokenizer_config.json", list)}));
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->chat_template, "a");
  EXPECT_EQ(config->tool_use_template, "b");
  const auto found = find_chat_template(
      files({file("tokenizer_config.json", list), file("chat_template.jinja", "c")}));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(*found, "c");
  const auto processor =
      find_chat_template(files({file("chat_template.json", R"({"chat_template": "d"})")}));
  ASSERT_TRUE(processor.has_value());
  EXPECT_EQ(*processor, "d");
}

TEST(TokenizerConfig, NamesTheFileAndTheKeyOfWhatIsWrong) {
  auto config = read_tokenizer_config(files({file("tokenizer_config.json", "{")}));
  ASSERT_FALSE(config.has_value());
  EXPECT_EQ(config.error().code, ErrorCode::kConfig);
  EXPECT_NE(config.error().message.find("tokenizer_config.json"), std::string::npos);
  config = read_tokenizer_config(files({file("tokenizer_config.json", R"({"bos_token": 1})")}));
  ASSERT_FALSE(config.has_value());
  EXPECT_NE(config.error().message.find("bos_token"), std::string::npos);
  config = read_tokenizer_config(files({file("tokenizer_config.json", R"({"chat_template": 1})")}));
  ASSERT_FALSE(config.has_value());
  EXPECT_NE(config.error().message.find("chat_template"), std::string::npos);
}

}  // namespace
}  // namespace weir::text
