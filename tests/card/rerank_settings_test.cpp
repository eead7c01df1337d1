#include "card/rerank_settings.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <span>
#include <string>

namespace weir::card {
namespace {

using File = std::pair<const char*, std::string>;

// What is read of a model with these files.
Result<RerankSettings> read(std::initializer_list<File> list, std::string_view config = "{}") {
  std::vector<ModelFiles::Embedded> embedded;
  for (const File& file : list)
    embedded.push_back({file.first, std::as_bytes(std::span(file.second))});
  const ModelFiles files = ModelFiles::embedded("m", embedded);
  WEIR_ASSIGN(const Modules modules, read_modules(files));
  const auto doc = JsonDoc::parse(config);
  return read_rerank_settings(files, doc->root(), modules);
}

constexpr const char* kScores =
    R"([{"idx":0,"path":"","type":"sentence_transformers.base.modules.transformer.Transformer"},
        {"idx":1,"path":"1_LogitScore",
         "type":"sentence_transformers.cross_encoder.modules.logit_score.LogitScore"}])";

TEST(RerankSettings, AreThoseOfTheFiles) {
  const auto none = read({});
  EXPECT_FALSE(none->tokens || none->words || none->roles);
  const auto module =
      read({{"modules.json", kScores},
            {"1_LogitScore/config.json", R"({"true_token_id":9,"false_token_id":7})"}});
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ(module->tokens->yes, 9);
  EXPECT_EQ(module->tokens->no, 7);
  EXPECT_TRUE(module->roles);
  const auto words = read({}, R"({"classifier_from_token":["n","y"]})");
  ASSERT_TRUE(words) << words.error().message;
  EXPECT_EQ(words->words->yes, "y");
  EXPECT_EQ(words->words->no, "n");
  EXPECT_FALSE(words->roles);
  const auto embeds =
      read({{"modules.json", R"([{"type":"a.Transformer"},{"type":"a.Pooling"}])"}});
  EXPECT_FALSE(embeds->tokens || embeds->words);
}

TEST(RerankSettings, RefuseWhatIsNotDone) {
  const auto one =
      read({{"modules.json", kScores},
            {"1_LogitScore/config.json", R"({"true_token_id":9,"false_token_id":null})"}});
  ASSERT_TRUE(one);
  EXPECT_FALSE(one->tokens);
  EXPECT_NE(one->refusal.find("false_token_id"), std::string::npos);
}

TEST(RerankSettings, NameWhatIsMalformed) {
  const auto message = [](const Result<RerankSettings>& settings) {
    return settings ? std::string() : settings.error().message;
  };
  EXPECT_NE(message(read({{"modules.json", kScores}})).find("1_LogitScore/config.json"),
            std::string::npos);
  EXPECT_EQ(message(read({{"modules.json", kScores},
                          {"1_LogitScore/config.json", R"({"true_token_id":"yes"})"}})),
            "1_LogitScore/config.json: 'true_token_id': expected an integer, found \"yes\"");
  EXPECT_EQ(message(read({{"modules.json", R"([{"type":"a.LogitScore","path":"../x"}])"}})),
            "modules.json: '[0].path': expected a path within the model's folder, found \"../x\"");
  EXPECT_EQ(message(read({}, R"({"classifier_from_token":["n"]})")),
            "config.json: 'classifier_from_token': expected two words, found [\"n\"]");
}

}  // namespace
}  // namespace weir::card
