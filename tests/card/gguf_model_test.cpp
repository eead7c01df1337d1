#include "card/gguf_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "card/model_card.h"
#include "gguf_file.h"

namespace weir::card {
namespace {

class GgufModels : public testing::Test {
 protected:
  GgufModels() { std::filesystem::create_directories(folder_); }
  ~GgufModels() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }
  Result<ModelCard> open(const std::string& name = "") const {
    return ModelCard::open_folder(folder_ + "/" + name);
  }
  std::string error(const std::string& name = "") const {
    const auto card = open(name);
    return card ? "(it opened)" : card.error().message;
  }
  const std::string folder_ =
      (std::filesystem::temp_directory_path() / ("weir_gguf_" + std::to_string(::getpid())))
          .string();
};

TEST_F(GgufModels, SayWhatConfigAndTensorsOfACheckpointSay) {
  write("m.gguf", small_gguf("llama").bytes());
  const auto card = open("m.gguf");
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->files.name(), "m");
  const JsonValue config = card->config.root();
  EXPECT_EQ(std::string_view(config["architectures"].at(0)), "LlamaForCausalLM");
  EXPECT_EQ(int64_t{config["hidden_size"]}, 64);
  EXPECT_EQ(int64_t{config["vocab_size"]}, 32);
  EXPECT_EQ(int64_t{config["num_key_value_heads"]}, 2);
  EXPECT_EQ(int64_t{config["head_dim"]}, 16);
  EXPECT_EQ(bool{config["tie_word_embeddings"]}, true);
  EXPECT_EQ(std::string_view(config["rope_parameters"]["pairs"]), "neighbours");
  const StoredTensor* q = card->tensors->find("model.layers.0.self_attn.q_proj.weight");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(to_string(q->tensor), "F32 [64, 64]");
  EXPECT_NE(card->tensors->find("model.norm.weight"), nullptr);
}

TEST_F(GgufModels, AreFoundInAFolderWithoutConfig) {
  write("m.gguf", small_gguf("qwen2").bytes());
  write("mmproj-m.gguf", "a projector");
  EXPECT_EQ(error(), "(it opened)");
  write("other.gguf", small_gguf("qwen2").bytes());
  EXPECT_NE(error().find("found m.gguf, other.gguf: give one of the files"), std::string::npos)
      << error();
  write("config.json", "{}");  // Then the folder is a checkpoint's.
  EXPECT_NE(error().find("model.safetensors"), std::string::npos) << error();
}

TEST_F(GgufModels, MayComeInParts) {
  GgufFile first = small_gguf("llama");
  first.key("split.count", 2, GgufFile::raw<uint16_t>(2));
  GgufFile second;
  second.floats("output.weight", {64, 32});
  write("m-00001-of-00002.gguf", first.bytes());
  EXPECT_NE(error("m-00001-of-00002.gguf").find("m-00002-of-00002.gguf is not there"),
            std::string::npos);
  write("m-00002-of-00002.gguf", second.bytes());
  for (const char* name : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf", ""}) {
    const auto card = open(name);
    ASSERT_TRUE(card) << card.error().message;
    EXPECT_EQ(card->tensors->files().size(), 2u);
    EXPECT_NE(card->tensors->find("lm_head.weight"), nullptr);
    EXPECT_EQ(bool{card->config.root()["tie_word_embeddings"]}, false);
  }
}

TEST_F(GgufModels, OfOtherKindsAreRefusedByName) {
  write("a.gguf", small_gguf("rwkv7").bytes());
  EXPECT_NE(error("a.gguf").find("found \"rwkv7\""), std::string::npos) << error("a.gguf");
  EXPECT_NE(error("a.gguf").find("expected one of deepseek2, gemma2"), std::string::npos);
  write("b.gguf", GgufFile().string("general.type", "adapter").floats("t", {4}).bytes());
  EXPECT_NE(error("b.gguf").find("expected a model, which the adapter is for"), std::string::npos);
  write("c.gguf", GgufFile().string("general.architecture", "clip").floats("t", {4}).bytes());
  EXPECT_NE(error("c.gguf").find("a projector of images or sound is not run"), std::string::npos);
  write("d.gguf", GgufFile().string("general.architecture", "llama").bytes());
  EXPECT_NE(error("d.gguf").find("a vocabulary alone"), std::string::npos);
}

TEST_F(GgufModels, SayWhichKeyIsWrong) {
  GgufFile file;
  file.string("general.architecture", "llama").string("llama.block_count", "two");
  file.integer("llama.embedding_length", 64).integer("llama.context_length", 64);
  file.integer("llama.attention.head_count", 4);
  write("m.gguf", file.floats("token_embd.weight", {64, 32}).bytes());
  EXPECT_NE(error("m.gguf").find("m.gguf: key \"llama.block_count\": expected integers, found a "
                                 "string"),
            std::string::npos)
      << error("m.gguf");
}

TEST_F(GgufModels, WithTwoTensorsOfOneMeaningAreRefused) {
  write("m.gguf", small_gguf("llama").floats("blk.0.post_attention_norm.weight", {64}).bytes());
  EXPECT_NE(error("m.gguf").find("post_attention_layernorm.weight\": expected one, found two"),
            std::string::npos)
      << error("m.gguf");
}

// What config.json names, or the error.
std::string architecture(const Result<ModelCard>& card) {
  if (!card) return card.error().message;
  return std::string(std::string_view(card->config.root()["architectures"].at(0)));
}

TEST_F(GgufModels, OfMixtralMayHaveATensorForEachExpert) {
  GgufFile file = small_gguf("llama");
  file.integer("llama.expert_count", 2).integer("llama.expert_used_count", 1);
  file.floats("blk.0.ffn_gate_inp.weight", {64, 2});
  for (const char* part : {"gate", "up", "down"})
    for (const char* expert : {"0", "1"})
      file.floats("blk.0.ffn_" + std::string(part) + "." + expert + ".weight", {64, 64});
  write("m.gguf", file.bytes());
  const auto card = open("m.gguf");
  ASSERT_EQ(architecture(card), "MixtralForCausalLM");
  for (const char* name : {"experts.0.w1.weight", "experts.1.w1.weight", "experts.1.w2.weight",
                           "experts.0.w3.weight", "gate.weight"})
    EXPECT_NE(card->tensors->find(std::string("model.layers.0.block_sparse_moe.") + name), nullptr)
        << name;
  // What is no number is no expert.
  write("x.gguf", small_gguf("llama").floats("blk.0.ffn_gate.x.weight", {64, 64}).bytes());
  EXPECT_NE(open("x.gguf")->tensors->find("blk.0.ffn_gate.x.weight"), nullptr);
}

// Attention as deepseek2 has it, in a file without tensors of it.
GgufFile small_latent() {
  GgufFile file = small_gguf("deepseek2");
  file.integer("deepseek2.attention.kv_lora_rank", 32)
      .integer("deepseek2.attention.key_length_mla", 24)
      .integer("deepseek2.attention.value_length_mla", 16)
      .integer("deepseek2.rope.dimension_count", 8);
  return file;
}

TEST_F(GgufModels, OfLatentAttentionAreTheFamilyThatTheirExpertsSay) {
  write("dense.gguf", small_latent().integer("deepseek2.leading_dense_block_count", 1).bytes());
  const auto dense = open("dense.gguf");
  ASSERT_EQ(architecture(dense), "YoutuForCausalLM");
  EXPECT_EQ(int64_t{dense->config.root()["qk_nope_head_dim"]}, 16);
  const auto experts = [] {
    GgufFile file = small_latent();
    file.integer("deepseek2.expert_count", 4)
        .integer("deepseek2.expert_used_count", 2)
        .integer("deepseek2.expert_feed_forward_length", 32);
    return file;
  };
  write("v2.gguf", experts().bytes());
  EXPECT_EQ(architecture(open("v2.gguf")), "DeepseekV2ForCausalLM");
  write("v3.gguf", experts().integer("deepseek2.expert_gating_func", 2).bytes());
  EXPECT_EQ(architecture(open("v3.gguf")), "DeepseekV3ForCausalLM");
  // GLM 4.7 Flash: the function is not said, but there is the bias that only sigmoids have.
  write("glm.gguf", experts().floats("blk.0.exp_probs_b.bias", {4}).bytes());
  EXPECT_EQ(architecture(open("glm.gguf")), "DeepseekV3ForCausalLM");
  write("biased.gguf", experts()
                           .integer("deepseek2.expert_gating_func", 1)
                           .floats("blk.0.exp_probs_b.bias", {4})
                           .bytes());
  EXPECT_EQ(architecture(open("biased.gguf")), "DeepseekV2ForCausalLM");
}

TEST_F(GgufModels, SayHowYarnEndsItsRamp) {
  const auto yarn = [] {
    GgufFile file = small_gguf("llama");
    file.string("llama.rope.scaling.type", "yarn").number("llama.rope.scaling.factor", 4);
    return file;
  };
  write("a.gguf", yarn().flag("llama.rope.scaling.yarn_truncate", false).bytes());
  const auto card = open("a.gguf");
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(bool{card->config.root()["rope_parameters"]["truncate"]}, false);
  write("b.gguf", yarn().number("llama.rope.scaling.yarn_ext_factor", -1).bytes());
  EXPECT_EQ(error("b.gguf"), "(it opened)");
  write("c.gguf", yarn().number("llama.rope.scaling.yarn_ext_factor", 0.5f).bytes());
  EXPECT_NE(error("c.gguf").find("yarn_ext_factor\": expected 1"), std::string::npos)
      << error("c.gguf");
}

TEST_F(GgufModels, MayListTheLayersThatAreRecurrent) {
  const auto listed = [](const std::string& flags) {
    GgufFile file = small_gguf("qwen35");
    for (const auto& [key, value] : {std::pair{"time_step_rank", 4},
                                     {"inner_size", 64},
                                     {"group_count", 2},
                                     {"state_size", 16},
                                     {"conv_kernel", 4}})
      file.integer("qwen35.ssm." + std::string(key), static_cast<uint32_t>(value));
    return file.list("qwen35.attention.recurrent_layers", 7, flags.size(), flags).bytes();
  };
  const auto first = [&](const std::string& flags) {
    write("m.gguf", listed(flags));
    const auto card = open("m.gguf");
    return card ? std::string(std::string_view(card->config.root()["layer_types"].at(0)))
                : card.error().message;
  };
  EXPECT_EQ(first(std::string(1, '\1')), "linear_attention");
  EXPECT_EQ(first(std::string(2, '\0')), "full_attention") << "a layer that guesses is listed too";
}

TEST_F(GgufModels, NameTheTokensThatEndAnAnswer) {
  GgufFile file = small_gguf("llama");
  const auto types = [](std::initializer_list<int32_t> list) {
    std::string items;
    for (const int32_t type : list) items += GgufFile::raw(type);
    return items;
  };
  file.strings("tokenizer.ggml.tokens", {"a", "<s>", "</s>", "<|im_end|>", "<|eot_id|>"});
  file.list("tokenizer.ggml.token_type", 5, 5, types({1, 3, 3, 3, 1}));
  file.integer("tokenizer.ggml.eos_token_id", 2).integer("tokenizer.ggml.bos_token_id", 1);
  file.string("tokenizer.chat_template", "{{ messages }}");
  file.number("general.sampling.temp", 0.5f);
  write("m.gguf", file.bytes());
  const auto card = open("m.gguf");
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->generation.eos_ids, (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(card->generation.temperature, 0.5);
  EXPECT_EQ(card->tokenizer.chat_template, "{{ messages }}");
  ASSERT_NE(card->tokenizer.special_token("bos_token"), nullptr);
  EXPECT_EQ(*card->tokenizer.special_token("bos_token"), "<s>");
  const auto tokenizer = card->open_tokenizer();
  ASSERT_TRUE(tokenizer);
  EXPECT_NE(tokenizer->text().find(R"("tokens":["a","<s>","</s>")"), std::string_view::npos)
      << tokenizer->text();
}

}  // namespace
}  // namespace weir::card
