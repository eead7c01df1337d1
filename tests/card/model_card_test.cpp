#include "card/model_card.h"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "card/default_model.h"

namespace weir::card {
namespace {

// A model's files in memory; `weights` has the least that is a safetensors file.
class Files {
 public:
  Files() {
    const uint64_t length = 2;
    weights_.resize(sizeof length);
    std::memcpy(weights_.data(), &length, sizeof length);
    weights_ += "{}";
    add("model.safetensors", weights_);
  }
  Files& add(std::string_view name, std::string_view text) {
    list_.push_back({name, std::as_bytes(std::span(text))});
    return *this;
  }
  Result<ModelCard> open(const std::vector<std::string>& overrides = {}) const {
    return ModelCard::open(ModelFiles::embedded("m", list_), overrides);
  }
  std::string error(const std::vector<std::string>& overrides = {}) const {
    const auto card = open(overrides);
    return card ? "" : card.error().message;
  }

 private:
  std::string weights_;
  std::vector<ModelFiles::Embedded> list_;
};

TEST(ModelCard, HoldsAllThatTheBuiltInModelsFilesSay) {
  const auto card = ModelCard::open(default_model());
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->files.name(), kDefaultModelName);
  EXPECT_EQ(card->files.folder(), "");
  EXPECT_TRUE(card->weights.quantised());
  EXPECT_NE(card->tensors->find("model.norm.weight"), nullptr);
  EXPECT_TRUE(card->tokenizer.chat_template);
  EXPECT_FALSE(card->generation.eos_ids.empty());
  EXPECT_FALSE(card->rerank.tokens || card->rerank.words);
  const auto tokenizer = card->open_tokenizer();
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_FALSE(tokenizer->view.text().empty());
}

TEST(ModelCard, OpensAVocabularyInTwoFilesWhereThereIsNoOther) {
  Files files;
  files.add("config.json", "{}").add("vocab.json", R"({"a":0,"b":1,"ab":2})");
  EXPECT_FALSE(files.open()->open_tokenizer()) << "no merges";
  files.add("merges.txt", "#version: 0.2\na b\r\n\n# #\n");
  const auto both = files.open()->open_tokenizer();
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_EQ(both->name, "vocab.json");
  EXPECT_EQ(both->text(), R"({"merges":["a b","# #"],"vocab":{"a":0,"b":1,"ab":2}})");
  files.add("tokenizer.json", "{}");
  EXPECT_EQ(files.open()->open_tokenizer()->name, "tokenizer.json");
}

TEST(ModelCard, OverridesTheConfigForAllWhoReadIt) {
  Files files;
  files.add("config.json", R"({"eos_token_id":1,"quantization":{"bits":4,"group_size":64}})");
  EXPECT_EQ(files.open()->generation.eos_ids, std::vector<int32_t>{1});
  const auto card = files.open({"eos_token_id=[2,3]", "quantization=null"});
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->generation.eos_ids, (std::vector<int32_t>{2, 3}));
  EXPECT_FALSE(card->weights.quantised());
  EXPECT_EQ(files.error({"eos_token_id"}),
            "--config-override 'eos_token_id': expected KEY=VALUE, found no '='");
}

TEST(ModelCard, NamesTheFolderOfAConfigThatIsWrong) {
  EXPECT_EQ(Files().error(), "m: expected config.json in this folder; it is not there");
  EXPECT_TRUE(Files().add("config.json", "{").error().starts_with("m/config.json: "));
  EXPECT_EQ(Files().add("config.json", "[1]").error(),
            "m/config.json: expected an object, found array");
  EXPECT_EQ(Files().add("config.json", R"({"eos_token_id":"x"})").error(),
            "m/config.json: 'eos_token_id': expected integers from 0 to 2147483647, found \"x\"");
  const auto other =
      Files().add("config.json", R"({"quantization_config":{"quant_method":"quanto"}})").open();
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kUnsupported);
  EXPECT_TRUE(other.error().message.starts_with("m/config.json: quantization_config.quant_method"));
}

TEST(ModelCard, LimitsTheSizesOfFiles) {
  const std::string config = "{\"a\":\"" + std::string(size_t{4} << 20, 'a') + "\"}";
  EXPECT_EQ(Files().add("config.json", config).error(),
            "m/config.json: expected at most 4194304 bytes, found 4194312");
  const std::string jinja(ModelFiles::kSettingsBytesMax + 1, ' ');
  EXPECT_EQ(Files().add("config.json", "{}").add("chat_template.jinja", jinja).error(),
            "m/chat_template.jinja: expected at most 16777216 bytes, found 16777217");
}

TEST(ModelCard, OpensWithoutATokenizer) {
  const auto card = Files().add("config.json", "{}").open();
  ASSERT_TRUE(card) << card.error().message;
  const auto tokenizer = card->open_tokenizer();
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().message, "m: expected a file tokenizer.json, found none");
}

TEST(ModelCard, OpensTheFirstOfATokenizersFilesWithItsConfig) {
  Files files;
  files.add("config.json", "{}").add("tokenizer_config.json", R"({"legacy":false})");
  for (const char* name :
       {"tokenizer.model", "qwen.tiktoken", "tiktoken.model", "tekken.json", "tokenizer.json"}) {
    files.add(name, name);
    const auto file = files.open()->open_tokenizer();
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->name, name);
    EXPECT_EQ(file->view.text(), name);
    EXPECT_EQ(file->config, R"({"legacy":false})");
  }
}

}  // namespace
}  // namespace weir::card
