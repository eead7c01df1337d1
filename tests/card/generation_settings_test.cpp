#include "card/generation_settings.h"

#include <gtest/gtest.h>

#include <span>
#include <string_view>

namespace weir::card {
namespace {

Result<GenerationSettings> read(std::string_view generation, std::string_view config = "{}") {
  std::vector<ModelFiles::Embedded> files;
  if (!generation.empty())
    files.push_back({"generation_config.json", std::as_bytes(std::span(generation))});
  const auto doc = JsonDoc::parse(config);
  return read_generation_settings(ModelFiles::embedded("m", files), doc->root());
}

TEST(GenerationSettings, AreEmptyWhereTheFilesSayNothing) {
  const auto settings = read("");
  ASSERT_TRUE(settings);
  EXPECT_FALSE(settings->temperature || settings->top_k || settings->top_p || settings->min_p ||
               settings->typical_p || settings->repetition_penalty);
  EXPECT_TRUE(settings->eos_ids.empty());
}

TEST(GenerationSettings, ReadWhatTheModelsMakersWrote) {
  const auto settings = read(R"({"do_sample":true,"temperature":0.6,"top_k":20,"top_p":0.95,
      "min_p":0.01,"repetition_penalty":1.05,"eos_token_id":[7,9],"transformers_version":"4"})",
                             R"({"eos_token_id":1})");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->temperature, 0.6);
  EXPECT_EQ(settings->top_k, 20);
  EXPECT_EQ(settings->top_p, 0.95);
  EXPECT_EQ(settings->min_p, 0.01);
  EXPECT_EQ(settings->repetition_penalty, 1.05);
  EXPECT_EQ(settings->eos_ids, (std::vector<int32_t>{7, 9}));
  EXPECT_EQ(read(R"({"top_k":-1})")->top_k, 0) << "all";
}

TEST(GenerationSettings, TakeTheEndOfSequenceFromConfigWhereNothingElseNamesIt) {
  EXPECT_EQ(read("", R"({"eos_token_id":3})")->eos_ids, (std::vector<int32_t>{3}));
  EXPECT_EQ(read("{}", R"({"text_config":{"eos_token_id":[4]}})")->eos_ids,
            (std::vector<int32_t>{4}));
  EXPECT_EQ(read("", R"({"llm_config":{"eos_token_id":5}})")->eos_ids, (std::vector<int32_t>{5}));
}

TEST(GenerationSettings, AreGreedyWhenDoSampleIsFalse) {
  EXPECT_EQ(read(R"({"do_sample":false,"temperature":0.7})")->temperature, 0);
  EXPECT_EQ(read(R"({"temperature":0.7})")->temperature, 0.7);
}

TEST(GenerationSettings, NameTheFileAndTheKeyThatIsWrong) {
  for (const char* text :
       {R"({"temperature":"x"})", R"({"top_k":1.5})", R"({"top_p":2})", R"({"do_sample":1})",
        R"({"eos_token_id":"x"})", R"({"eos_token_id":[1,-2]})", "[]", "{"}) {
    const auto result = read(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kConfig);
    EXPECT_NE(result.error().message.find("generation_config.json"), std::string::npos)
        << result.error().message;
  }
  EXPECT_EQ(read(R"({"top_p":2})").error().message,
            "generation_config.json: 'top_p': expected a number from 0 to 1, found 2");
}

}  // namespace
}  // namespace weir::card
