#include "card/embedding_settings.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <span>
#include <string>

namespace weir::card {
namespace {

using File = std::pair<const char*, std::string>;

// What is read of a model with these files.
Result<EmbeddingSettings> read(std::initializer_list<File> list) {
  std::vector<ModelFiles::Embedded> embedded;
  for (const File& file : list)
    embedded.push_back({file.first, std::as_bytes(std::span(file.second))});
  const ModelFiles files = ModelFiles::embedded("m", embedded);
  WEIR_ASSIGN(const Modules modules, read_modules(files));
  return read_embedding_settings(files, modules);
}

constexpr const char* kThree =
    R"([{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
        {"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
        {"idx":2,"name":"2","path":"2_Normalize","type":"sentence_transformers.models.Normalize"}])";

std::string modes(const char* on) {
  std::string out = R"({"word_embedding_dimension":64)";
  for (const char* mode : {"cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens",
                           "weightedmean_tokens", "lasttoken"})
    out += std::string(R"(,"pooling_mode_)") + mode +
           (std::strcmp(mode, on) == 0 ? "\":true" : "\":false");
  return out + R"(,"include_prompt":true})";
}

TEST(EmbeddingSettings, IsThatOfTheFiles) {
  const auto none = read({});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->pooling, Pooling::kLast);
  EXPECT_TRUE(none->normalise && none->refusal.empty());

  const auto mean =
      read({{"modules.json", kThree}, {"1_Pooling/config.json", modes("mean_tokens")}});
  EXPECT_EQ(mean->pooling, Pooling::kMean);
  EXPECT_TRUE(mean->normalise);
  EXPECT_EQ(read({{"1_Pooling/config.json", modes("cls_token")}})->pooling, Pooling::kCls);
  EXPECT_EQ(read({{"1_Pooling/config.json", R"({"pooling_mode":"mean"})"}})->pooling,
            Pooling::kMean);
  EXPECT_EQ(read({{"1_Pooling/config.json", R"({"pooling_mode":["lasttoken"]})"}})->pooling,
            Pooling::kLast);
  const auto raw = read({{"modules.json", R"([{"type":"x.Transformer"},{"type":"y.Pooling"}])"},
                         {"1_Pooling/config.json", modes("lasttoken")}});
  EXPECT_FALSE(raw->normalise);
  const auto prompts =
      read({{"config_sentence_transformers.json",
             R"({"prompts":{"query":"Q: ","doc":""},"default_prompt_name":null})"}});
  EXPECT_EQ(prompts->prompts.size(), 2u);
  EXPECT_EQ(prompts->default_prompt, "");
}

TEST(EmbeddingSettings, RefusesWhatIsNotDone) {
  EXPECT_NE(read({{"1_Pooling/config.json", modes("weightedmean_tokens")}})->refusal, "");
  EXPECT_NE(read({{"1_Pooling/config.json", R"({"pooling_mode":["mean","cls"]})"}})->refusal, "");
  EXPECT_NE(read({{"modules.json", R"([{"type":"a.Transformer"},{"type":"a.Dense"}])"}})
                ->refusal.find("Dense"),
            std::string::npos);
}

TEST(EmbeddingSettings, NamesWhatIsMalformed) {
  EXPECT_FALSE(read({{"modules.json", "{}"}}));
  EXPECT_FALSE(read({{"modules.json", "[1]"}}));
  EXPECT_FALSE(read({{"modules.json", R"([{"type":"a.Pooling","path":"../x"}])"}}));
  EXPECT_FALSE(read({{"1_Pooling/config.json", R"({"pooling_mode_mean_tokens":1})"}}));
  EXPECT_FALSE(read({{"1_Pooling/config.json", R"({"pooling_mode":1})"}}));
  EXPECT_FALSE(read({{"config_sentence_transformers.json", R"({"prompts":[]})"}}));
  const auto broken = read({{"1_Pooling/config.json", "{"}});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::kConfig);
  EXPECT_NE(broken.error().message.find("1_Pooling/config.json"), std::string::npos);
}

}  // namespace
}  // namespace weir::card
