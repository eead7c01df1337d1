// config.json as families read it: sticky errors, unread keys, both spellings of rope, and
// golden descriptions of real models' sizes (tests/data/configs).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "model/families.h"

namespace weir::model {
namespace {

namespace fs = std::filesystem;

constexpr char kBase[] =
    R"("architectures":["LlamaForCausalLM"],"vocab_size":256,"hidden_size":64,"num_hidden_layers":2,)"
    R"("num_attention_heads":4,"intermediate_size":80,"max_position_embeddings":128,"torch_dtype":"float16")";

Result<ModelSpec> spec_of(const std::string& more) {
  auto doc = JsonDoc::parse(std::string("{") + kBase + (more.empty() ? "" : ",") + more + "}");
  EXPECT_TRUE(doc) << doc.error().message;
  return spec_from_config(doc->root());
}

std::string error_of(const std::string& more) {
  const auto spec = spec_of(more);
  return spec ? "" : spec.error().message;
}

const Rope& rope_of(const ModelSpec& spec, size_t layer = 0) {
  return *model::rope_of(spec.sublayers[2 * layer].op);
}

TEST(Config, TakesDefaultsForMissingKeys) {
  const auto spec = spec_of("");
  ASSERT_TRUE(spec) << spec.error().message;
  const auto& a = std::get<Attention>(spec->sublayers[0].op);
  EXPECT_EQ(a.num_kv_heads, 4);
  EXPECT_EQ(a.head_dim, 16);
  EXPECT_FLOAT_EQ(a.scale, 0.25f);
  EXPECT_FLOAT_EQ(a.rope.theta, 10000);
  EXPECT_FALSE(spec->tied_head);
}

TEST(Config, NamesKeyExpectedAndFound) {
  EXPECT_EQ(error_of(R"("attn_logit_softcapping":50.0)"),
            "config.json: 'attn_logit_softcapping': expected only keys that this family knows, "
            "found 50.0; it may change what the model computes (if that is wrong: "
            "--config-override 'attn_logit_softcapping=null')");
  EXPECT_EQ(error_of(R"("rms_norm_eps":"small")"),
            "config.json: 'rms_norm_eps': expected a number, found \"small\"");
  EXPECT_EQ(error_of(R"("num_key_value_heads":0)"),
            "config.json: 'num_key_value_heads': expected an integer from 1 to 1048576, found 0");
  EXPECT_EQ(error_of(R"("pretraining_tp":2)"),
            "config.json: 'pretraining_tp': expected 1, found 2 (if that is wrong: "
            "--config-override 'pretraining_tp=1')");
  EXPECT_NE(
      error_of(R"("num_key_value_heads":3)").find("multiple of key-value heads, found 4 and 3"),
      std::string::npos);
  EXPECT_NE(error_of(R"("hidden_act":"mish")").find("hidden_act: expected silu, gelu"),
            std::string::npos);
  EXPECT_NE(error_of(R"("rope_scaling":{"type":"linear"})")
                .find("'rope_scaling.factor': expected a number, found nothing"),
            std::string::npos);
  EXPECT_NE(error_of(R"("rope_scaling":{"type":"magic","factor":2})").find("found \"magic\""),
            std::string::npos);
  EXPECT_NE(error_of(R"("rope_scaling":{"type":"linear","factor":2,"phase":1})")
                .find("'rope_scaling.phase'"),
            std::string::npos);
  EXPECT_NE(error_of(R"("rope_scaling":7)").find("'rope_scaling': expected an object, found 7"),
            std::string::npos);
}

TEST(Config, LeavesUnreadWhatComputesNothing) {
  for (const char* key :
       {R"("use_mrope":false)", R"("_attn_implementation_autoset":true)", R"("vision_config":null)",
        R"("pruned_heads":{})", R"("do_sample":true)", R"("temperature":0.6)",
        R"("pretraining_tp":1)", R"("anything":null)", R"("no_rope_layers":[])",
        R"("residual_multiplier":1.0)", R"("num_nextn_predict_layers":0)",
        R"("layer_types":["full_attention","full_attention"])",
        R"("rope_scaling":{"rope_type":"default","factor":4.0,"mrope_section":null})"})
    EXPECT_EQ(error_of(key), "") << key;
  for (const char* key :
       {R"("use_mrope":true)", R"("vision_config":{"depth":2})", R"("pruned_heads":{"0":[1]})",
        R"("pretraining_tp":2)", R"("residual_multiplier":0.5)", R"("residual_multiplier":true)",
        R"("num_nextn_predict_layers":1)",
        R"("layer_types":["full_attention","sliding_attention"])", R"("sliding_window":4096)",
        R"("anything":false)", R"("anything":0)", R"("use_mrope":0)",
        R"("rope_scaling":{"rope_type":"default","mrope_section":[1,2]})"}) {
    EXPECT_NE(error_of(key).find("--config-override '"), std::string::npos)
        << key << ": " << error_of(key);
  }
  EXPECT_NE(error_of(R"("rope_scaling":{"type":"default","mrope_section":[1]})")
                .find("--config-override 'rope_scaling.mrope_section=null'"),
            std::string::npos);
}

TEST(Config, RefusesSizesThatNoModelHas) {
  EXPECT_NE(error_of(R"("head_dim":4000)").find("expected a head_dim from 1 to 1024, found 4000"),
            std::string::npos);
  auto doc =
      JsonDoc::parse(R"({"architectures":["LlamaForCausalLM"],"num_hidden_layers":2000000000})");
  EXPECT_FALSE(spec_from_config(doc->root()));
  doc = JsonDoc::parse(R"({"architectures":["NoSuchModel"]})");
  const auto unknown = spec_from_config(doc->root());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(unknown.error().message.find("found NoSuchModel"), std::string::npos);
  doc = JsonDoc::parse(R"({"architectures":["Qwen3ForCasualLM"]})");
  EXPECT_NE(spec_from_config(doc->root()).error().message.find("did you mean Qwen3ForCausalLM?"),
            std::string::npos);
  doc = JsonDoc::parse("[1]");
  EXPECT_FALSE(spec_from_config(doc->root()));
}

TEST(Config, ReadsBothSpellingsOfRopeAlike) {
  const auto old_way = spec_of(
      R"("rope_theta":500000.0,"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":64})");
  const auto new_way = spec_of(
      R"("rope_parameters":{"rope_theta":500000.0,"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,"original_max_position_embeddings":64})");
  ASSERT_TRUE(old_way) << old_way.error().message;
  ASSERT_TRUE(new_way) << new_way.error().message;
  EXPECT_EQ(rope_of(*old_way), rope_of(*new_way));
  EXPECT_EQ(rope_of(*new_way).scaling, Rope::kLlama3);
  EXPECT_FLOAT_EQ(rope_of(*new_way).original_context, 64);
}

TEST(Config, ReadsRopeByLayerType) {
  const auto doc = JsonDoc::parse(
      R"({"architectures":["Gemma3ForCausalLM"],"vocab_size":256,"hidden_size":64,"num_hidden_layers":2,)"
      R"("num_attention_heads":4,"num_key_value_heads":2,"head_dim":32,"intermediate_size":80,)"
      R"("max_position_embeddings":128,"sliding_window":8,"layer_types":["sliding_attention","full_attention"],)"
      R"("rope_parameters":{"full_attention":{"rope_type":"linear","factor":8.0,"rope_theta":1000000.0},)"
      R"("sliding_attention":{"rope_type":"default","rope_theta":10000.0}}})");
  const auto spec = spec_from_config(doc->root());
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(rope_of(*spec, 0).scaling, Rope::kNone);
  EXPECT_FLOAT_EQ(rope_of(*spec, 0).theta, 10000);
  EXPECT_EQ(rope_of(*spec, 1).scaling, Rope::kLinear);
  EXPECT_FLOAT_EQ(rope_of(*spec, 1).theta, 1000000);
  EXPECT_EQ(std::get<Attention>(spec->sublayers[0].op).window, 8);
  EXPECT_EQ(std::get<Attention>(spec->sublayers[2].op).window, 0);
  EXPECT_TRUE(spec->tied_unless_stored);
}

// Hand-written configs with the sizes of published models; the text beside each is what `weir info`
// prints. A change that alters a model by accident shows as a line here.
class GoldenConfig : public testing::TestWithParam<std::string> {};

TEST_P(GoldenConfig, IsDescribedAsRecorded) {
  const auto config = read_file(GetParam(), 1 << 20);
  ASSERT_TRUE(config);
  const auto doc = JsonDoc::parse(*config);
  ASSERT_TRUE(doc);
  const auto spec = spec_from_config(doc->root());
  const std::string text = spec ? describe(*spec) : "error: " + spec.error().message + "\n";
  const std::string golden = GetParam().substr(0, GetParam().size() - 5) + ".txt";
  if (std::getenv("WEIR_UPDATE_GOLDEN")) std::ofstream(golden) << text;
  const auto recorded = read_file(golden, 1 << 20);
  ASSERT_TRUE(recorded) << recorded.error().message;
  EXPECT_EQ(text, *recorded);
}

std::vector<std::string> golden_configs() {
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(WEIR_SOURCE_DIR "/tests/data/configs"))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string golden_name(const testing::TestParamInfo<std::string>& info) {
  return fs::path(info.param).stem().string();
}

INSTANTIATE_TEST_SUITE_P(All, GoldenConfig, testing::ValuesIn(golden_configs()), golden_name);

}  // namespace
}  // namespace weir::model
