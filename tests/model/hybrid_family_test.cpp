// Families whose layers have states: which layers, their sizes and factors, in all spellings.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/concat.h"
#include "model/families.h"

namespace weir::model {
namespace {

Result<ModelSpec> spec_of(std::string_view architecture, std::string_view more) {
  const std::string config =
      concat({R"({"architectures":[")", architecture,
              R"("],"hidden_size":512,"num_hidden_layers":4,"intermediate_size":1000)",
              more.empty() ? "" : ",", more, "}"});
  auto doc = JsonDoc::parse(config);
  EXPECT_TRUE(doc) << config;
  return spec_from_config(doc->root());
}

std::string error_of(const Result<ModelSpec>& spec) { return spec ? "" : spec.error().message; }

// Of each layer: 'A' for attention, another letter for what has a state.
std::string mixers(const Result<ModelSpec>& spec) {
  std::string out;
  for (size_t i = 0; spec && i < spec->sublayers.size(); i += 2) {
    const Operation& op = spec->sublayers[i].op;
    out += std::holds_alternative<Attention>(op)   ? 'A'
           : std::holds_alternative<ShortConv>(op) ? 'C'
           : std::holds_alternative<Lightning>(op) ? 'L'
                                                   : '?';
  }
  return out + error_of(spec);
}

int ffn_width(const Result<ModelSpec>& spec) {
  return spec ? std::get<Dense>(spec->sublayers[1].op).width : 0;
}

TEST(HybridFamily, Lfm2ConvolvesWhereItIsSaidInEitherSpelling) {
  const auto with = [](std::string_view more) { return spec_of("Lfm2ForCausalLM", more); };
  EXPECT_EQ(mixers(with("")), "AAAA");
  EXPECT_EQ(mixers(with(R"("full_attn_idxs":[1,3])")), "CACA");
  EXPECT_EQ(mixers(with(R"("full_attn_idxs":[])")), "CCCC");
  EXPECT_EQ(mixers(with(R"("layer_types":["conv","conv","full_attention","conv"])")), "CCAC");
  const auto spec = with(R"("full_attn_idxs":[2],"conv_L_cache":5,"conv_bias":true)");
  ASSERT_TRUE(spec) << error_of(spec);
  const auto& conv = std::get<ShortConv>(spec->sublayers[0].op);
  EXPECT_EQ(conv.channels, 512);
  EXPECT_EQ(conv.taps, 5);
  EXPECT_TRUE(conv.bias);
  EXPECT_TRUE(spec->tied_head);
  EXPECT_FALSE(with(R"("tie_embedding":false)")->tied_head);
  for (const char* taps : {"1", "17"})
    EXPECT_NE(error_of(with(concat({R"("full_attn_idxs":[2],"conv_L_cache":)", taps})))
                  .find("conv_L_cache from 2 to 16"),
              std::string::npos);
}

TEST(HybridFamily, Lfm2AdjustsTheWidthOfItsFeedForwardLayers) {
  const auto width = [](std::string_view more) {
    const auto spec = spec_of("Lfm2ForCausalLM", more);
    EXPECT_TRUE(spec) << error_of(spec);
    return ffn_width(spec);
  };
  EXPECT_EQ(width(""), 768);  // 666, in multiples of 256.
  EXPECT_EQ(width(R"("block_multiple_of":10)"), 670);
  EXPECT_EQ(width(R"("block_multiple_of":10,"block_ffn_dim_multiplier":1.5)"), 1000);
  EXPECT_EQ(width(R"("block_multiple_of":10,"block_ffn_dim_multiplier":null)"), 666);
  EXPECT_EQ(width(R"("block_auto_adjust_ff_dim":false)"), 1000);
  EXPECT_EQ(width(R"("block_ff_dim":600,"block_multiple_of":1)"), 400);
}

TEST(HybridFamily, Lfm2MoeHasDenseLayersFirst) {
  const auto spec = spec_of("Lfm2MoeForCausalLM",
                            R"("moe_intermediate_size":96,"layer_types":["conv","full_attention",)"
                            R"("conv","full_attention"],"use_expert_bias":false)");
  EXPECT_EQ(mixers(spec), "CACA");
  EXPECT_EQ(ffn_width(spec), 1000);
  EXPECT_TRUE(std::holds_alternative<Dense>(spec->sublayers[3].op));
  const auto& moe = std::get<Moe>(spec->sublayers[5].op);
  EXPECT_EQ(moe.num_experts, 32);
  EXPECT_EQ(moe.top_k, 4);
  EXPECT_FALSE(moe.router.selection_bias);
  EXPECT_TRUE(moe.router.renormalise);
}

TEST(HybridFamily, MinimaxFadesWhereItIsSaidInEitherSpelling) {
  const auto with = [](std::string_view more) { return spec_of("MiniMaxForCausalLM", more); };
  EXPECT_EQ(mixers(with("")), "ALAL");
  EXPECT_EQ(mixers(with(R"("attn_type_list":[0,0,0,1])")), "LLLA");
  EXPECT_EQ(mixers(with(R"("layer_types":["linear_attention","full_attention",)"
                        R"("linear_attention","linear_attention"])")),
            "LALL");
  EXPECT_NE(error_of(with(R"("attn_type_list":[0,1])")).find("one for each of 4 layers, found 2"),
            std::string::npos);
  EXPECT_NE(error_of(with(R"("attn_type_list":[0,1,2,1])")).find("expected 0 or 1, found 2"),
            std::string::npos);
}

TEST(HybridFamily, MinimaxHeadsFadeAtRatesOfTheirLayer) {
  const auto spec = spec_of("MiniMaxForCausalLM", R"("num_attention_heads":16)");
  ASSERT_TRUE(spec) << error_of(spec);
  for (const size_t layer : {1, 3}) {
    const auto& lightning = std::get<Lightning>(spec->sublayers[2 * layer].op);
    ASSERT_EQ(lightning.rates.size(), 16u);
    for (size_t head = 0; head < 16; ++head) {
      const double rate = std::exp2(-(static_cast<double>(head) + 1) / 2) *
                          (1 - static_cast<double>(layer) / 3.00001 + 1e-5);
      EXPECT_NEAR(lightning.rates[head], rate, 1e-7) << "layer " << layer << ", head " << head;
    }
  }
}

TEST(HybridFamily, MinimaxCarriesWhatSublayersReadByItsFactors) {
  for (const char* keys :
       {R"("full_attn_alpha_factor":1.5,"linear_attn_beta_factor":0.5,"mlp_alpha_factor":3)",
        R"("layernorm_full_attention_alpha":1.5,"layernorm_linear_attention_beta":0.5,)"
        R"("layernorm_mlp_alpha":3)"}) {
    const auto spec = spec_of("MiniMaxForCausalLM", keys);
    ASSERT_TRUE(spec) << error_of(spec);
    const Sublayer &full = spec->sublayers[0], &mlp = spec->sublayers[1],
                   &linear = spec->sublayers[2];
    EXPECT_EQ(full.carry, 1.5f);
    EXPECT_EQ(full.scale, 1);
    EXPECT_EQ(linear.carry, 1);
    EXPECT_EQ(linear.scale, 0.5f);
    EXPECT_EQ(mlp.carry, 3);
    for (const Sublayer* sublayer : {&full, &mlp, &linear}) EXPECT_TRUE(sublayer->carries_input);
  }
  const auto before = spec_of("MiniMaxForCausalLM", R"("postnorm":false,"rotary_dim":8)");
  ASSERT_TRUE(before) << error_of(before);
  EXPECT_FALSE(before->sublayers[0].carries_input);
  EXPECT_EQ(rope_of(before->sublayers[0].op)->dim, 8);
}

}  // namespace
}  // namespace weir::model
