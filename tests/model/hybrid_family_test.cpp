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
           : std::holds_alternative<Mamba1>(op)    ? 'M'
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

TEST(HybridFamily, JambaAttendsAndHasExpertsEverySoManyLayers) {
  const auto with = [](std::string_view more) { return spec_of("JambaForCausalLM", more); };
  const auto experts = [](const Result<ModelSpec>& spec) {
    std::string out;
    for (size_t i = 1; spec && i < spec->sublayers.size(); i += 2)
      out += std::holds_alternative<Moe>(spec->sublayers[i].op) ? 'E' : '-';
    return out + error_of(spec);
  };
  EXPECT_EQ(mixers(with("")), "MMMM");  // The fifth of eight attends.
  EXPECT_EQ(experts(with("")), "-E-E");
  const auto spec = with(R"("attn_layer_period":2,"attn_layer_offset":0,"num_experts":4,)"
                         R"("expert_layer_period":3,"expert_layer_offset":2)");
  EXPECT_EQ(mixers(spec), "AMAM");
  EXPECT_EQ(experts(spec), "--E-");
  EXPECT_EQ(rope_of(spec->sublayers[0].op)->dim, 0);
  const auto& moe = std::get<Moe>(spec->sublayers[5].op);
  EXPECT_EQ(moe.num_experts, 4);
  EXPECT_EQ(moe.router.score, Router::kSoftmax);
  EXPECT_FALSE(moe.router.renormalise);
  EXPECT_EQ(experts(with(R"("num_experts":1,"num_experts_per_tok":1)")), "----");
  for (const char* kind : {"attn", "expert"}) {
    const std::string found = error_of(
        with(concat({R"(")", kind, R"(_layer_period":3,")", kind, R"(_layer_offset":3)"})));
    EXPECT_NE(found.find(concat({kind, "_layer_offset: expected less than ", kind,
                                 "_layer_period, which is 3, found 3"})),
              std::string::npos)
        << found;
  }
}

TEST(HybridFamily, MambaTakesWhatItsKeysLeaveOutFromItsWidth) {
  const auto mixer = [](std::string_view architecture, std::string_view more) {
    const std::string config = concat({R"({"architectures":[")", architecture,
                                       R"("],"hidden_size":520,"num_hidden_layers":2)",
                                       more.empty() ? "" : ",", more, "}"});
    auto doc = JsonDoc::parse(config);
    const auto spec = spec_from_config(doc->root());
    EXPECT_TRUE(spec) << error_of(spec);
    return spec ? std::get<Mamba1>(spec->sublayers[1].op) : Mamba1{};
  };
  const Mamba1 plain = mixer("MambaForCausalLM", R"("time_step_rank":"auto")");
  EXPECT_EQ(plain.inner, 1040);
  EXPECT_EQ(plain.step_rank, 33);  // 520 / 16, rounded up.
  EXPECT_EQ(plain.state_dim, 16);
  EXPECT_EQ(plain.norms, Mamba1::kNone);
  EXPECT_TRUE(plain.conv_bias);
  EXPECT_FALSE(plain.bias);
  const Mamba1 said = mixer("FalconMambaForCausalLM",
                            R"("expand":16,"intermediate_size":1000,"time_step_rank":7,)"
                            R"("use_bias":true,"use_conv_bias":false,"mixer_rms_eps":0.5)");
  EXPECT_EQ(said.inner, 1000);  // Where it is said, whatever the factor.
  EXPECT_EQ(said.step_rank, 7);
  EXPECT_EQ(said.norms, Mamba1::kPlain);
  EXPECT_EQ(said.norm_eps, 0.5f);
  EXPECT_TRUE(said.bias);
  EXPECT_FALSE(said.conv_bias);
}

TEST(HybridFamily, MambaRefusesSizesThatItCannotHave) {
  const auto error = [](std::string_view more) {
    return error_of(spec_of("MambaForCausalLM", more));
  };
  EXPECT_EQ(error(R"("d_model":512,"d_inner":1000,"n_layer":4)"), "");
  for (const auto& [keys, what] :
       {std::pair{R"("conv_kernel":1)", "conv_kernel from 2 to 16, found 1"},
        {R"("conv_kernel":17)", "conv_kernel from 2 to 16, found 17"},
        {R"("state_size":5000)", "state_size from 1 to 1024, found 5000"},
        {R"("state_size":0)", "state_size"},
        {R"("time_step_rank":100000)", "time_step_rank from 1 to 65536, found 100000"},
        {R"("time_step_rank":"many")", "time_step_rank"},
        {R"("d_inner":1024)", "d_inner"},
        {R"("mixer_rms_eps":1e-6)", "mixer_rms_eps"},
        {R"("hidden_act":"gelu")", "hidden_act: expected silu"}})
    EXPECT_NE(error(keys).find(what), std::string::npos) << keys << ": " << error(keys);
}

}  // namespace
}  // namespace weir::model
