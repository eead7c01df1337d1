// DeepSeek V4's config.json and names of tensors: which layers are of which kind, what is refused
// by name, and files with DeepSeek's own names.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/concat.h"
#include "base/file.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/decoder.h"
#include "model/families.h"
#include "model/session.h"

namespace weir::model {
namespace {

Result<ModelSpec> spec_of(std::string_view more) {
  const std::string config =
      concat({R"({"architectures":["DeepseekV4ForCausalLM"],"vocab_size":64,"hidden_size":128,)",
              R"("num_hidden_layers":3,"num_attention_heads":8,"moe_intermediate_size":32,)",
              R"("max_position_embeddings":4096,"num_hash_layers":1,)", more, "}"});
  const auto doc = JsonDoc::parse(config);
  EXPECT_TRUE(doc) << config;
  return spec_from_config(doc->root());
}

const CompressedAttention& attention(const ModelSpec& spec, size_t layer) {
  return std::get<CompressedAttention>(spec.sublayers[2 * layer].op);
}

TEST(DeepseekV4, LayersAreOfTheKindsThatTheirRatiosSay) {
  const auto spec = spec_of(
      R"("compress_ratios":[0,4,128],"compress_rate_hca":16,"rope_theta":500,
         "rope_scaling":{"type":"yarn","factor":16,"original_max_position_embeddings":256})");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(attention(*spec, 0).ratio, 0);
  EXPECT_EQ(attention(*spec, 0).rope.theta, 500);
  EXPECT_EQ(attention(*spec, 0).rope.scaling, Rope::kNone);
  EXPECT_EQ(attention(*spec, 1).ratio, 4);
  EXPECT_TRUE(attention(*spec, 1).overlaps);
  EXPECT_EQ(attention(*spec, 1).index_heads, 64);
  EXPECT_EQ(attention(*spec, 2).ratio, 16);
  EXPECT_FALSE(attention(*spec, 2).overlaps);
  EXPECT_EQ(attention(*spec, 2).index_heads, 0);
  for (const size_t layer : {size_t{1}, size_t{2}}) {
    const Rope& rope = attention(*spec, layer).rope;
    EXPECT_EQ(rope.theta, 160000);
    EXPECT_EQ(rope.scaling, Rope::kYarn);
    EXPECT_EQ(rope.attention_factor, 1);
    EXPECT_EQ(rope.layout, Rope::kInterleaved);
    EXPECT_EQ(rope.dim, 64);
  }
  const auto& first = std::get<Moe>(spec->sublayers[1].op);
  const auto& second = std::get<Moe>(spec->sublayers[3].op);
  EXPECT_EQ(first.router.token_table, 64);
  EXPECT_FALSE(first.router.selection_bias);
  EXPECT_EQ(second.router.token_table, 0);
  EXPECT_TRUE(second.router.selection_bias);
  EXPECT_EQ(second.expert.limit, 10);
  EXPECT_EQ(second.shared->limit, 10);
}

TEST(DeepseekV4, RatiosMayBeSaidOfLayersThatGuess) {
  EXPECT_TRUE(spec_of(R"("compress_ratios":[0,4,128])"));
  EXPECT_TRUE(spec_of(R"("compress_ratios":[0,4,128,0])"));
  EXPECT_TRUE(spec_of(R"("compress_ratios":[0,4,128,0,0],"num_nextn_predict_layers":2)"));
}

TEST(DeepseekV4, RefusesWhatItDoesNotComputeByName) {
  const auto expect = [](std::string_view more, std::string_view said) {
    const auto spec = spec_of(more);
    const std::string error = spec ? "" : spec.error().message;
    EXPECT_NE(error.find(said), std::string::npos) << said << " in: " << error;
  };
  const std::string ratios = R"("compress_ratios":[0,4,128],)";
  expect(R"("head_dim":512)", "compress_ratios: expected one for each of 3 layers, found 0");
  expect(R"("compress_ratios":[0,4])", "compress_ratios");
  expect(R"("compress_ratios":[0,4,64])", "compress_ratios[2]: expected 0, 4 or 128, found 64");
  expect(ratios + R"("compress_rate_hca":0)", "compress_rate_hca");
  expect(ratios + R"("num_key_value_heads":2)", "num_key_value_heads");
  expect(ratios + R"("attention_bias":true)", "attention_bias");
  expect(ratios + R"("scoring_func":"sigmoid")", "scoring_func");
  expect(ratios + R"("n_group":8)", "n_group");
  expect(ratios + R"("sliding_window":null)", "sliding_window");
  expect(ratios + R"("o_groups":3)", "o_groups");
  expect(ratios + R"("hc_mult":1)", "hc_mult");
  expect(ratios + R"("index_topk":0)", "index_topk");
  expect(ratios + R"("compress_rate_csa":8)", "compress_rate_csa");
}

const std::string kFolder = WEIR_SOURCE_DIR "/tests/data/families/deepseek_v4/";

std::string read(const std::string& path) {
  auto text = read_file(path, 1 << 24);
  EXPECT_TRUE(text) << text.error().message;
  return text ? *text : "";
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// The file with DeepSeek's own names; longer ones come before those that they contain.
std::string with_deepseeks_names(const std::string& file) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"\"model.embed_tokens.", "\"embed."},
      {"\"model.norm.", "\"norm."},
      {"\"model.hc_head.hc_", "\"hc_head_"},
      {"\"model.layers.", "\"layers."},
      {".attn_hc.", ".hc_attn_"},
      {".ffn_hc.", ".hc_ffn_"},
      {".input_layernorm.", ".attn_norm."},
      {".post_attention_layernorm.", ".ffn_norm."},
      {".compressor.indexer.q_b_proj.", ".indexer.wq_b."},
      {".compressor.indexer.scorer.weights_proj.", ".indexer.weights_proj."},
      {".compressor.indexer.kv_proj.", ".indexer.compressor.wkv."},
      {".compressor.indexer.gate_proj.", ".indexer.compressor.wgate."},
      {".compressor.indexer.position_bias", ".indexer.compressor.ape"},
      {".compressor.indexer.kv_norm.", ".indexer.compressor.norm."},
      {".compressor.kv_proj.", ".compressor.wkv."},
      {".compressor.gate_proj.", ".compressor.wgate."},
      {".compressor.position_bias", ".compressor.ape"},
      {".compressor.kv_norm.", ".compressor.norm."},
      {".self_attn.q_a_proj.", ".self_attn.wq_a."},
      {".self_attn.q_a_norm.", ".self_attn.q_norm."},
      {".self_attn.q_b_proj.", ".self_attn.wq_b."},
      {".self_attn.kv_proj.", ".self_attn.wkv."},
      {".self_attn.o_a_proj.", ".self_attn.wo_a."},
      {".self_attn.o_b_proj.", ".self_attn.wo_b."},
      {".self_attn.sinks", ".self_attn.attn_sink"},
      {".self_attn.", ".attn."},
      {".mlp.gate.e_score_correction_bias", ".mlp.gate.bias"},
      {".shared_experts.gate_proj.", ".shared_experts.w1."},
      {".shared_experts.up_proj.", ".shared_experts.w3."},
      {".shared_experts.down_proj.", ".shared_experts.w2."},
      {".mlp.", ".ffn."},
  };
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  std::string header = file.substr(sizeof length, length);
  for (const auto& [from, to] : kNames) replace_all(header, from, to);
  while (header.size() % 8 != 0) header += ' ';
  const uint64_t now = header.size();
  std::string out(sizeof now, '\0');
  std::memcpy(out.data(), &now, sizeof now);
  return out + header + file.substr(sizeof length + length);
}

// The logits of some tokens, or the error of the file.
std::vector<float> logits_of(const std::string& file, std::string& error) {
  const std::string config = read(kFolder + "config.json");
  const auto card = card::ModelCard::open(
      card::ModelFiles::embedded("m", {{"config.json", std::as_bytes(std::span(config))},
                                       {"model.safetensors", std::as_bytes(std::span(file))}}));
  if (!card) return error = card.error().message, std::vector<float>{};
  ThreadTeam team(1);
  auto model = Decoder::bind(*card, {.compute = Compute::kExact, .rows_max = 64},
                             kernels::ops_for(kernels::detect_isa()), 1);
  if (!model) return error = model.error().message, std::vector<float>{};
  (*model)->pack(team, {});
  auto session = Session::create(**model, team, {.kv_format = kernels::FloatType::kF32});
  if (!session) return error = session.error().message, std::vector<float>{};
  std::array<int32_t, 40> tokens{};
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i * 11 % 200);
  session->begin(0, static_cast<int32_t>(tokens.size()));
  const Session::Slice slice = {.tokens = tokens};
  std::vector<float> out;
  session->forward({&slice, 1}, [&](size_t, size_t, std::span<float> logits) {
    out.assign(logits.begin(), logits.end());
  });
  return out;
}

TEST(DeepseekV4, ReadsFilesWithDeepseeksOwnNames) {
  const std::string file = read(kFolder + "model.safetensors");
  const std::string theirs = with_deepseeks_names(file);
  EXPECT_NE(theirs.find("\"layers.1.attn.indexer.compressor.ape\""), std::string::npos);
  EXPECT_EQ(theirs.find("\"model."), std::string::npos);
  std::string error;
  const std::vector<float> expected = logits_of(file, error);
  ASSERT_FALSE(expected.empty()) << error;
  EXPECT_EQ(logits_of(theirs, error), expected) << error;
}

TEST(DeepseekV4, NamesATensorThatIsNotThere) {
  std::string file = read(kFolder + "model.safetensors"), error;
  replace_all(file, "layers.1.self_attn.compressor.position_bias",
              "layers.1.self_attn.compressor.position_bios");
  EXPECT_TRUE(logits_of(file, error).empty());
  EXPECT_NE(error.find("model.layers.1.self_attn.compressor.position_bias"), std::string::npos)
      << error;
}

}  // namespace
}  // namespace weir::model
