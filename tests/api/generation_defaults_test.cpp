#include "api/generation_defaults.h"

#include <gtest/gtest.h>

#include "api/sampling_fields.h"

namespace weir::api {
namespace {

Result<GenerationDefaults> read(std::string_view generation, std::string_view config = "{}") {
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  std::vector<ModelFiles::Embedded> files = {{"config.json", bytes(config)}};
  if (!generation.empty()) files.push_back({"generation_config.json", bytes(generation)});
  return read_generation_defaults(ModelFiles::embedded("m", files));
}

TEST(GenerationDefaults, AreLlamaServersWhereTheFilesSayNothing) {
  const auto defaults = read("");
  ASSERT_TRUE(defaults);
  EXPECT_FLOAT_EQ(defaults->sampling.temperature, 0.8f);
  EXPECT_EQ(defaults->sampling.top_k, 40);
  EXPECT_FLOAT_EQ(defaults->sampling.top_p, 0.95f);
  EXPECT_FLOAT_EQ(defaults->sampling.min_p, 0.05f);
  EXPECT_EQ(defaults->sampling.repetition_penalty, 1);
  EXPECT_TRUE(defaults->eos_ids.empty());
  EXPECT_EQ(describe(*defaults), "temperature=0.8 top_k=40 top_p=0.95 min_p=0.05 (default)");
}

TEST(GenerationDefaults, ReadWhatTheModelsMakersWrote) {
  const auto defaults = read(R"({"do_sample":true,"temperature":0.6,"top_k":20,"top_p":0.95,
      "min_p":0.01,"repetition_penalty":1.05,"eos_token_id":[7,9],"transformers_version":"4"})",
                             R"({"eos_token_id":1})");
  ASSERT_TRUE(defaults) << defaults.error().message;
  EXPECT_FLOAT_EQ(defaults->sampling.temperature, 0.6f);
  EXPECT_EQ(defaults->sampling.top_k, 20);
  EXPECT_FLOAT_EQ(defaults->sampling.top_p, 0.95f);
  EXPECT_FLOAT_EQ(defaults->sampling.min_p, 0.01f);
  EXPECT_FLOAT_EQ(defaults->sampling.repetition_penalty, 1.05f);
  EXPECT_EQ(defaults->eos_ids, (std::vector<int32_t>{7, 9}));
}

TEST(GenerationDefaults, OverruleOneAnotherNumberByNumber) {
  auto defaults = read(R"({"temperature":0.6,"top_k":-1})");
  ASSERT_TRUE(defaults) << defaults.error().message;
  defaults->set("temperature", 0.4, kFromCommandLine);
  defaults->set("dry_multiplier", 0.5, kFromCommandLine);
  EXPECT_EQ(describe(*defaults),
            "temperature=0.4 dry_multiplier=0.5 (command line) top_k=0 (generation_config.json) "
            "top_p=0.95 min_p=0.05 (default)");
}

TEST(GenerationDefaults, TakeTheEndOfSequenceFromConfigWhereNothingElseNamesIt) {
  EXPECT_EQ(read("", R"({"eos_token_id":3})")->eos_ids, (std::vector<int32_t>{3}));
  EXPECT_EQ(read("{}", R"({"text_config":{"eos_token_id":[4]}})")->eos_ids,
            (std::vector<int32_t>{4}));
}

TEST(GenerationDefaults, AreGreedyWhenDoSampleIsFalse) {
  EXPECT_EQ(read(R"({"do_sample":false,"temperature":0.7})")->sampling.temperature, 0);
  EXPECT_FLOAT_EQ(read(R"({"temperature":0.7})")->sampling.temperature, 0.7f);
}

TEST(GenerationDefaults, NameTheFileAndTheKeyThatIsWrong) {
  for (const char* text :
       {R"({"temperature":"x"})", R"({"top_k":1.5})", R"({"top_p":2})", R"({"do_sample":1})",
        R"({"eos_token_id":"x"})", R"({"eos_token_id":[1,-2]})", "[]", "{"}) {
    const auto result = read(text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kConfig);
    EXPECT_NE(result.error().message.find("generation_config.json"), std::string::npos)
        << result.error().message;
  }
}

}  // namespace
}  // namespace weir::api
