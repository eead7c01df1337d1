#include "card/tokenizer_settings.h"

#include <gtest/gtest.h>

#include <span>

namespace weir::card {
namespace {

ModelFiles::Embedded file(std::string_view name, std::string_view text) {
  return {name, std::as_bytes(std::span(text.data(), text.size()))};
}

ModelFiles files(std::vector<ModelFiles::Embedded> list) {
  return ModelFiles::embedded("model", std::move(list));
}

TEST(TokenizerSettings, HasNothingWhereTheModelHasNoSuchFile) {
  const auto settings = read_tokenizer_settings(files({}));
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->chat_template, std::nullopt);
  EXPECT_TRUE(settings->special_tokens.empty());
}

TEST(TokenizerSettings, ReadsTokensAsStringsAndAsObjects) {
  const auto settings = read_tokenizer_settings(
      files({file("tokenizer_config.json",
                  R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>",
                      "pad_token": null, "chat_template": "{{ messages }}"})"),
             file("special_tokens_map.json", R"({"eos_token": "other", "unk_token": "<unk>"})")}));
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(*settings->special_token("bos_token"), "<s>");
  EXPECT_EQ(*settings->special_token("eos_token"), "</s>") << "tokenizer_config.json wins";
  EXPECT_EQ(*settings->special_token("unk_token"), "<unk>");
  EXPECT_EQ(settings->special_token("pad_token"), nullptr);
  EXPECT_EQ(settings->chat_template, "{{ messages }}");
}

TEST(TokenizerSettings, PrefersTheJinjaFileAndReadsNamedTemplates) {
  const std::string_view list =
      R"({"chat_template": [{"name": "default", "template": "a"},
                            {"name": "tool_use", "template": "b"}]})";
  auto settings = read_tokenizer_settings(files({file("tokenizer_config.json", list)}));
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(settings->chat_template, "a");
  EXPECT_EQ(settings->tool_use_template, "b");
  const auto found = read_tokenizer_settings(
      files({file("tokenizer_config.json", list), file("chat_template.jinja", "c")}));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->chat_template, "c");
  const auto processor =
      read_tokenizer_settings(files({file("chat_template.json", R"({"chat_template": "d"})")}));
  ASSERT_TRUE(processor.has_value());
  EXPECT_EQ(processor->chat_template, "d");
}

TEST(TokenizerSettings, NamesTheFileAndTheKeyOfWhatIsWrong) {
  auto settings = read_tokenizer_settings(files({file("tokenizer_config.json", "{")}));
  ASSERT_FALSE(settings.has_value());
  EXPECT_EQ(settings.error().code, ErrorCode::kConfig);
  EXPECT_NE(settings.error().message.find("tokenizer_config.json"), std::string::npos);
  settings = read_tokenizer_settings(files({file("tokenizer_config.json", R"({"bos_token": 1})")}));
  ASSERT_FALSE(settings.has_value());
  EXPECT_NE(settings.error().message.find("bos_token"), std::string::npos);
  settings =
      read_tokenizer_settings(files({file("tokenizer_config.json", R"({"chat_template": 1})")}));
  ASSERT_FALSE(settings.has_value());
  EXPECT_NE(settings.error().message.find("chat_template"), std::string::npos);
}

}  // namespace
}  // namespace weir::card
