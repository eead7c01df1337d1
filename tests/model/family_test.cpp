// Families: what each takes for keys that config.json leaves out or gives as null, which layers
// slide, and numbers that no model can have. The defaults are those of transformers' configuration
// of each family, because a missing key takes the family's default; they are written here a second
// time, by architecture.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "base/concat.h"
#include "model/families.h"

namespace weir::model {
namespace {

// The keys that every family requires. Widths suit heads of 16 as well as 128 and 256.
Result<ModelSpec> spec_of(std::string_view architecture, std::string_view more = "") {
  const std::string config = concat(
      {R"({"architectures":[")", architecture,
       R"("],"vocab_size":256,"hidden_size":512,"num_hidden_layers":4,"num_attention_heads":32,)",
       R"("intermediate_size":80,"moe_intermediate_size":96,"max_position_embeddings":128)",
       more.empty() ? "" : ",", more, "}"});
  auto doc = JsonDoc::parse(config);
  EXPECT_TRUE(doc) << config;
  return spec_from_config(doc->root());
}

// The same for families that have no experts, to which moe_intermediate_size is unknown.
Result<ModelSpec> dense_spec_of(std::string_view architecture, std::string_view more = "") {
  const std::string config = concat(
      {R"({"architectures":[")", architecture,
       R"("],"vocab_size":256,"hidden_size":512,"num_hidden_layers":4,"num_attention_heads":32,)",
       R"("intermediate_size":80,"max_position_embeddings":128)", more.empty() ? "" : ",", more,
       "}"});
  auto doc = JsonDoc::parse(config);
  EXPECT_TRUE(doc) << config;
  return spec_from_config(doc->root());
}

const Attention& attention(const ModelSpec& spec, size_t layer = 0) {
  return std::get<Attention>(spec.sublayers[2 * layer].op);
}

std::string error_of(const Result<ModelSpec>& spec) { return spec ? "" : spec.error().message; }

void expect_error(const Result<ModelSpec>& spec, std::string_view part) {
  EXPECT_NE(error_of(spec).find(part), std::string::npos)
      << "expected " << part << " in: " << error_of(spec);
}

struct Expected {
  const char* architecture;
  float eps, theta;
  int kv_heads, head_dim, window;  // Of layer 0.
  bool tied = false;
};

TEST(Family, TakesItsOwnDefaultsForKeysThatAreLeftOut) {
  const Expected kDense[] = {
      {"LlamaForCausalLM", 1e-6f, 1e4f, 32, 16, 0},
      {"GraniteForCausalLM", 1e-6f, 1e4f, 32, 16, 0},
      {"MistralForCausalLM", 1e-6f, 1e4f, 8, 16, 4096},
      {"MixtralForCausalLM", 1e-5f, 1e6f, 8, 16, 0},
      {"Phi3ForCausalLM", 1e-5f, 1e4f, 32, 16, 0},
      {"OlmoeForCausalLM", 1e-5f, 1e4f, 32, 16, 0},
      {"Qwen2ForCausalLM", 1e-6f, 1e4f, 32, 16, 0},
      {"Qwen3ForCausalLM", 1e-6f, 1e4f, 32, 128, 0},
      {"Gemma2ForCausalLM", 1e-6f, 1e4f, 4, 256, 4096, true},
      {"Gemma3ForCausalLM", 1e-6f, 1e4f, 4, 256, 4096, true},  // Layer 0 slides: the local base.
      {"GemmaForCausalLM", 1e-6f, 1e4f, 16, 256, 0, true},
      {"ArceeForCausalLM", 1e-5f, 1e4f, 32, 16, 0},
      {"CohereForCausalLM", 1e-5f, 5e5f, 32, 16, 0, true},
      {"Cohere2ForCausalLM", 1e-5f, 1e4f, 32, 16, 4096, true},
      {"Ernie4_5ForCausalLM", 1e-5f, 5e5f, 2, 128, 0, true},
      {"ExaoneForCausalLM", 1e-5f, 1e4f, 32, 16, 0, true},
      {"GlmForCausalLM", 1.5625e-7f, 1e4f, 2, 128, 0},
      {"Glm4ForCausalLM", 1.5625e-7f, 1e4f, 2, 128, 0},
      {"HunYuanDenseV1ForCausalLM", 1e-5f, 1e4f, 32, 16, 0},
      {"InternLM2ForCausalLM", 1e-6f, 1e4f, 32, 16, 0},
      {"InternLM3ForCausalLM", 1e-6f, 1e4f, 32, 16, 0},
      {"MiMoForCausalLM", 1e-6f, 1e4f, 32, 16, 0},
      {"MiniCPMForCausalLM", 1e-6f, 1e4f, 32, 16, 0, true},
      {"MinistralForCausalLM", 1e-6f, 1e4f, 8, 16, 4096},
      {"Ministral3ForCausalLM", 1e-5f, 1e6f, 8, 128, 0},
      {"NemotronForCausalLM", 1e-5f, 1e4f, 32, 16, 0},
      {"OlmoForCausalLM", 1e-5f, 1e4f, 32, 16, 0},
      {"SeedOssForCausalLM", 1e-6f, 1e4f, 8, 128, 0},
      {"SmolLM3ForCausalLM", 1e-6f, 2e6f, 4, 16, 0, true},
  };
  for (const Expected& e : kDense) {
    const auto spec = dense_spec_of(e.architecture);
    ASSERT_TRUE(spec) << e.architecture << ": " << error_of(spec);
    EXPECT_EQ(spec->final_norm.eps, e.eps) << e.architecture;
    EXPECT_EQ(spec->sublayers[0].pre->eps, e.eps) << e.architecture;
    EXPECT_EQ(attention(*spec).rope.theta, e.theta) << e.architecture;
    EXPECT_EQ(attention(*spec).num_kv_heads, e.kv_heads) << e.architecture;
    EXPECT_EQ(attention(*spec).head_dim, e.head_dim) << e.architecture;
    EXPECT_EQ(attention(*spec).window, e.window) << e.architecture;
    EXPECT_EQ(spec->tied_head, e.tied) << e.architecture;
  }
  const auto qwen3_moe = spec_of("Qwen3MoeForCausalLM");
  ASSERT_TRUE(qwen3_moe) << error_of(qwen3_moe);
  EXPECT_EQ(attention(*qwen3_moe).num_kv_heads, 4);
  EXPECT_EQ(std::get<Moe>(qwen3_moe->sublayers[1].op).num_experts, 128);
  const auto qwen2_moe = spec_of("Qwen2MoeForCausalLM", R"("shared_expert_intermediate_size":64)");
  ASSERT_TRUE(qwen2_moe) << error_of(qwen2_moe);
  EXPECT_EQ(attention(*qwen2_moe).num_kv_heads, 16);
  EXPECT_EQ(std::get<Moe>(qwen2_moe->sublayers[1].op).num_experts, 60);
}

// What a family does with keys that only it has.
TEST(Family, DenseFamiliesReadTheirOwnKeys) {
  const auto layer = [](size_t i, std::string_view architecture, std::string_view more = "") {
    const auto spec = dense_spec_of(architecture, more);
    EXPECT_TRUE(spec) << error_of(spec);
    return spec ? attention(*spec, i) : Attention{};
  };
  EXPECT_EQ(layer(0, "Ministral3ForCausalLM").rope.scaling, Rope::kYarn);
  EXPECT_EQ(layer(0, "Ministral3ForCausalLM").position_step, 16384);
  EXPECT_EQ(layer(0, "Ministral3ForCausalLM", R"("rope_parameters":{})").position_beta, 0);
  EXPECT_EQ(layer(0, "Cohere2ForCausalLM", R"("sliding_window":null)").rope.dim, 0);
  EXPECT_EQ(layer(0, "NemotronForCausalLM", R"("rope_percent":0.25)").rope.dim, 4);
  const char* windows =
      R"("use_sliding_window":true,"sliding_window":8,"no_rope_layers":[1,0,1,1])";
  EXPECT_EQ(layer(1, "SmolLM3ForCausalLM", windows).window, 8);
  EXPECT_EQ(layer(1, "SmolLM3ForCausalLM", windows).rope.dim, 0);
  EXPECT_EQ(layer(3, "SmolLM3ForCausalLM", windows).window, 0);
  const char* ropes =
      R"("rope_parameters":{"full_attention":{"rope_type":"linear","factor":4,"rope_theta":7},)"
      R"("sliding_attention":{"rope_type":"default","rope_theta":9}})";
  EXPECT_EQ(layer(0, "Olmo3ForCausalLM", ropes).rope.theta, 9);
  EXPECT_EQ(layer(0, "Olmo3ForCausalLM", ropes).rope.factor, 1);
  EXPECT_EQ(layer(3, "Olmo3ForCausalLM", ropes).rope.theta, 7);
  EXPECT_EQ(layer(3, "Olmo3ForCausalLM", ropes).rope.factor, 4);
  expect_error(dense_spec_of("SmolLM3ForCausalLM", R"("no_rope_layers":[1,0])"),
               "no_rope_layers: expected one for each of 4 layers, found 2");
  expect_error(dense_spec_of("Cohere2ForCausalLM", R"("position_embedding_type":"alibi")"),
               "position_embedding_type: expected rope_gptj, found \"alibi\"");
  expect_error(dense_spec_of("OlmoForCausalLM", R"("clip_qkv":-1)"), "clip_qkv");
}

TEST(Family, Qwen3NextHasStatesUnlessALayerAttendsToAll) {
  const auto next = [](std::string_view more) {
    return spec_of("Qwen3NextForCausalLM", concat({R"("shared_expert_intermediate_size":64)",
                                                   more.empty() ? "" : ",", more}));
  };
  const auto spec = next("");
  ASSERT_TRUE(spec) << error_of(spec);
  EXPECT_EQ(spec->final_norm.weight_offset, 1);
  for (const size_t layer : {0, 1, 2}) {
    const auto& delta = std::get<GatedDelta>(spec->sublayers[2 * layer].op);
    EXPECT_EQ(delta.key_heads, 16);
    EXPECT_EQ(delta.value_heads, 32);
    EXPECT_EQ(delta.key_dim, 128);
    EXPECT_EQ(delta.value_dim, 128);
    EXPECT_EQ(delta.conv_taps, 4);
  }
  EXPECT_EQ(attention(*spec, 3).rope.dim, 64);
  EXPECT_EQ(attention(*spec, 3).qk_norm_offset, 1);
  EXPECT_EQ(attention(*spec, 3).out_gate, Attention::kAfterQuery);
  const auto& moe = std::get<Moe>(spec->sublayers[1].op);
  EXPECT_EQ(moe.num_experts, 512);
  EXPECT_EQ(moe.top_k, 10);
  EXPECT_TRUE(moe.router.renormalise);

  const auto listed =
      next(R"("mlp_only_layers":[2],"layer_types":["full_attention","linear_attention",)"
           R"("full_attention","linear_attention"])");
  ASSERT_TRUE(listed) << error_of(listed);
  EXPECT_EQ(attention(*listed, 2).head_dim, 256);
  EXPECT_TRUE(std::holds_alternative<GatedDelta>(listed->sublayers[2].op));
  EXPECT_TRUE(std::holds_alternative<Dense>(listed->sublayers[5].op));
  expect_error(
      next(R"("layer_types":["full_attention","linear_attention","sliding_attention",""])"),
      "layer_types[2]: expected linear_attention or full_attention");
  expect_error(next(R"("linear_num_key_heads":0)"), "linear_num_key_heads; found 32 and 0");
  expect_error(next(R"("linear_num_value_heads":24)"), "found 24 and 16");
  expect_error(next(R"("linear_num_value_heads":1000000)"), "at most 4096");
  expect_error(next(R"("linear_key_head_dim":-1)"), "from 1 to 1024, found -1 and 128");
  expect_error(next(R"("linear_value_head_dim":4096)"), "found 128 and 4096");
  for (const char* taps : {"1", "17"})
    expect_error(next(concat({R"("linear_conv_kernel_dim":)", taps})), "from 2 to 16");
}

TEST(Family, DeepseekV2HasLatentAttentionAndDenseLayersFirst) {
  const auto spec_with = [](std::string_view more) {
    return spec_of("DeepseekV2ForCausalLM",
                   concat({R"("num_experts_per_tok":6,"q_lora_rank":null)", more}));
  };
  const auto spec = spec_with(R"(,"first_k_dense_replace":1,"moe_layer_freq":2)");
  ASSERT_TRUE(spec) << error_of(spec);
  const auto& a = std::get<LatentAttention>(spec->sublayers[0].op);
  EXPECT_EQ(a.q_rank, 0);
  EXPECT_EQ(a.kv_rank, 512);
  EXPECT_EQ(a.rope_dim, 64);
  EXPECT_EQ(a.rope.layout, Rope::kInterleaved);
  EXPECT_FLOAT_EQ(a.scale, 1 / std::sqrt(192.0f));
  for (size_t layer = 0; layer < 4; ++layer)
    EXPECT_EQ(std::holds_alternative<Moe>(spec->sublayers[2 * layer + 1].op), layer == 2);
  const auto& moe = std::get<Moe>(spec->sublayers[5].op);
  EXPECT_EQ(moe.num_experts, 64);
  EXPECT_EQ(moe.shared->width, 2 * moe.expert.width);
  EXPECT_EQ(moe.router.groups, 1);
  EXPECT_EQ(std::get<LatentAttention>(
                spec_of("DeepseekV2ForCausalLM", R"("num_experts_per_tok":6)")->sublayers[0].op)
                .q_rank,
            1536);

  const auto moe_with = [&](std::string_view more) {
    const auto found = spec_with(more);
    EXPECT_TRUE(found) << error_of(found);
    return std::get<Moe>(found->sublayers[1].op);
  };
  const Router limited =
      moe_with(R"(,"topk_method":"group_limited_greedy","n_group":8,"topk_group":3,)"
               R"("routed_scaling_factor":16.0)")
          .router;
  EXPECT_EQ(limited.groups, 8);
  EXPECT_EQ(limited.groups_kept, 3);
  EXPECT_EQ(limited.scale, 16);
  const Router whole =
      moe_with(R"(,"n_group":8,"norm_topk_prob":true,"routed_scaling_factor":16.0)").router;
  EXPECT_EQ(whole.groups, 1);  // "greedy" asks for no group.
  EXPECT_TRUE(whole.renormalise);
  EXPECT_EQ(whole.scale, 1);
  EXPECT_FALSE(moe_with(R"(,"n_shared_experts":null)").shared);
}

TEST(Family, DeepseekV3ChoosesBySigmoidAmongGroups) {
  const auto spec_with = [](std::string_view more) {
    return spec_of("DeepseekV3ForCausalLM", more);
  };
  const auto spec = spec_with(R"("first_k_dense_replace":1)");
  ASSERT_TRUE(spec) << error_of(spec);
  const Moe& moe = std::get<Moe>(spec->sublayers[3].op);
  EXPECT_EQ(moe.num_experts, 256);
  EXPECT_EQ(moe.top_k, 8);
  EXPECT_EQ(moe.router.groups, 8);
  EXPECT_EQ(moe.router.groups_kept, 4);
  EXPECT_EQ(moe.router.scale, 2.5f);
  EXPECT_TRUE(moe.router.selection_bias);

  const auto attention_with = [&](std::string_view more) {
    const auto found = spec_with(more);
    EXPECT_TRUE(found) << error_of(found);
    return std::get<LatentAttention>(found->sublayers[0].op);
  };
  EXPECT_TRUE(attention_with(R"("attention_bias":true)").bias);
  EXPECT_EQ(attention_with(R"("rope_interleave":false)").rope.layout, Rope::kHalf);
  // A share of the head, or of what turns.
  EXPECT_EQ(attention_with(R"("rope_parameters":{"partial_rotary_factor":0.334})").rope.dim, 64);
  EXPECT_EQ(attention_with(R"("partial_rotary_factor":1.0)").rope.dim, 64);
  expect_error(spec_with(R"("partial_rotary_factor":0.5)"), "partial_rotary_factor: expected 1");
  expect_error(spec_with(R"("qk_head_dim":128)"), "qk_head_dim");
  expect_error(spec_with(R"("topk_method":"greedy")"), "topk_method: expected sigmoid or noaux_tc");

  const auto typed = spec_with(R"("mlp_layer_types":["sparse","dense","sparse","dense"])");
  ASSERT_TRUE(typed) << error_of(typed);
  for (size_t layer = 0; layer < 4; ++layer)
    EXPECT_EQ(std::holds_alternative<Moe>(typed->sublayers[2 * layer + 1].op), layer % 2 == 0);
  expect_error(spec_with(R"("mlp_layer_types":["sparse"])"), "expected one for each of 4 layers");
}

TEST(Family, QueriesOfMistral4GrowWithTheirPosition) {
  const auto attention_with = [](std::string_view more) {
    const auto spec = spec_of("Mistral4ForCausalLM", more);
    EXPECT_TRUE(spec) << error_of(spec);
    return std::get<LatentAttention>(spec->sublayers[0].op);
  };
  const LatentAttention usual = attention_with("");
  EXPECT_EQ(usual.rope.scaling, Rope::kYarn);
  EXPECT_EQ(usual.rope.factor, 128);
  EXPECT_EQ(usual.position_beta, 0.1f);
  EXPECT_EQ(usual.position_step, 8192);
  const LatentAttention said = attention_with(
      R"("rope_parameters":{"rope_type":"yarn","factor":4,"llama_4_scaling_beta":0.5,)"
      R"("original_max_position_embeddings":32,"mscale":1,"mscale_all_dim":1})");
  EXPECT_EQ(said.position_beta, 0.5f);
  EXPECT_EQ(said.position_step, 32);
  EXPECT_FLOAT_EQ(said.scale, 1 / std::sqrt(128.0f));  // mscale_all_dim does not count.
  EXPECT_EQ(attention_with(R"("rope_parameters":{"rope_theta":1000})").position_beta, 0);
}

TEST(Family, MiniCpm3IsNotScaledByNull) {
  const auto spec_with = [](std::string_view more) {
    const auto spec = dense_spec_of("MiniCPM3ForCausalLM", more);
    EXPECT_TRUE(spec) << error_of(spec);
    return *spec;
  };
  const ModelSpec usual = spec_with("");
  EXPECT_EQ(usual.embed_scale, 12);
  EXPECT_EQ(usual.logit_scale, 0.5f);
  EXPECT_FLOAT_EQ(usual.sublayers[0].scale, 0.7f);
  const auto& attention = std::get<LatentAttention>(usual.sublayers[0].op);
  EXPECT_EQ(attention.v_head_dim, 16);
  EXPECT_EQ(attention.rope.layout, Rope::kHalf);
  const ModelSpec none = spec_with(R"("scale_depth":null,"dim_model_base":null,"v_head_dim":24)");
  EXPECT_EQ(none.logit_scale, 1);
  EXPECT_EQ(none.sublayers[0].scale, 1);
  EXPECT_EQ(std::get<LatentAttention>(none.sublayers[0].op).v_head_dim, 24);
}

TEST(Family, LongcatHoldsItsExpertsUntilTheEndOfALayer) {
  const auto longcat = [](std::string_view more) {
    const std::string config = concat(
        {R"({"architectures":["LongcatFlashForCausalLM"],"vocab_size":256,"hidden_size":512,)",
         R"("num_layers":2,"num_attention_heads":4,"ffn_hidden_size":80,"q_lora_rank":128,)",
         R"("expert_ffn_hidden_size":96,"max_position_embeddings":128)", more, "}"});
    auto doc = JsonDoc::parse(config);
    EXPECT_TRUE(doc) << config;
    return spec_from_config(doc->root());
  };
  const auto spec = longcat("");
  ASSERT_TRUE(spec) << error_of(spec);
  ASSERT_EQ(spec->sublayers.size(), 10U);
  const auto& attention = std::get<LatentAttention>(spec->sublayers[0].op);
  EXPECT_FLOAT_EQ(attention.scale, 2 / std::sqrt(192.0f));
  EXPECT_FLOAT_EQ(attention.latent_scale, 1);  // As wide as the model.
  const Moe& moe = std::get<Moe>(spec->sublayers[1].op);
  EXPECT_EQ(moe.choices(), 768);
  EXPECT_TRUE(spec->sublayers[1].held);
  EXPECT_EQ(spec->sublayers[2].input, Sublayer::kSameAsBefore);
  EXPECT_TRUE(spec->sublayers[4].adds_held);
  const auto plain = longcat(R"(,"mla_scale_q_lora":false,"zero_expert_num":null)");
  ASSERT_TRUE(plain) << error_of(plain);
  EXPECT_FLOAT_EQ(std::get<LatentAttention>(plain->sublayers[0].op).scale, 1 / std::sqrt(192.0f));
  EXPECT_EQ(std::get<Moe>(plain->sublayers[1].op).zero_experts, 0);
  expect_error(longcat(R"(,"router_bias":true)"), "router_bias");
  expect_error(longcat(R"(,"zero_expert_type":"drop")"), "zero_expert_type: expected identity");

  ModelSpec twice = *spec;
  twice.sublayers[2].adds_held = true;
  EXPECT_FALSE(check_spec(twice));
  ModelSpec never = *spec;
  never.sublayers[9].adds_held = false;
  EXPECT_FALSE(check_spec(never));
}

TEST(Family, DeepseekV2RefusesWhatItDoesNotKnow) {
  const auto expect = [](std::string_view more, std::string_view part) {
    expect_error(spec_of("DeepseekV2ForCausalLM", concat({R"("num_experts_per_tok":6,)", more})),
                 part);
  };
  expect(R"("topk_method":"noaux_tc")", "topk_method: expected greedy or group_limited_greedy");
  expect(R"("scoring_func":"sigmoid")", "scoring_func: expected softmax, found \"sigmoid\"");
  expect(R"("kv_lora_rank":1000)", "expected a kv_lora_rank from 1 to 960, found 1000");
  expect(R"("qk_rope_head_dim":63)", "expected an even number of rotary dimensions up to 63");
  expect(R"("qk_nope_head_dim":2000)", "expected a qk_nope_head_dim from 1 to 1024, found 2000");
  expect(R"("v_head_dim":0)", "'v_head_dim'");
  expect(R"("index_topk":2048)", "index_topk");
}

TEST(Family, GemmasCapLogitsUnlessTheySayNull) {
  const auto gemma2 = dense_spec_of("Gemma2ForCausalLM");
  ASSERT_TRUE(gemma2) << error_of(gemma2);
  EXPECT_EQ(gemma2->logit_softcap, 30);
  EXPECT_EQ(attention(*gemma2).logit_softcap, 50);
  const auto uncapped = dense_spec_of(
      "Gemma2ForCausalLM", R"("final_logit_softcapping":null,"attn_logit_softcapping":null)");
  ASSERT_TRUE(uncapped) << error_of(uncapped);
  EXPECT_EQ(uncapped->logit_softcap, 0);
  EXPECT_EQ(attention(*uncapped).logit_softcap, 0);
  const auto gemma3 = dense_spec_of("Gemma3ForCausalLM");
  ASSERT_TRUE(gemma3) << error_of(gemma3);
  EXPECT_EQ(gemma3->logit_softcap, 0);
  EXPECT_EQ(attention(*gemma3).logit_softcap, 0);
  EXPECT_EQ(attention(*gemma3, 3).rope.theta, 1e4f);
  const auto full = dense_spec_of("Gemma3ForCausalLM", R"("sliding_window_pattern":4)");
  ASSERT_TRUE(full) << error_of(full);
  EXPECT_EQ(attention(*full, 3).rope.theta, 1e6f);
}

TEST(Family, ReadsNullAsNoneWhereTheDefaultIsSomething) {
  for (const char* architecture : {"MistralForCausalLM", "Gemma2ForCausalLM"}) {
    const auto spec = dense_spec_of(architecture, R"("sliding_window":null)");
    ASSERT_TRUE(spec) << error_of(spec);
    EXPECT_EQ(attention(*spec).window, 0) << architecture;
  }
  const char* windowed = R"("use_sliding_window":true,"max_window_layers":2)";
  const auto absent = dense_spec_of("Qwen2ForCausalLM", windowed);
  ASSERT_TRUE(absent) << error_of(absent);
  EXPECT_EQ(attention(*absent, 1).window, 0);
  EXPECT_EQ(attention(*absent, 2).window, 4096);
  const auto null =
      dense_spec_of("Qwen2ForCausalLM", concat({windowed, R"(,"sliding_window":null)"}));
  ASSERT_TRUE(null) << error_of(null);
  EXPECT_EQ(attention(*null, 2).window, 0);
  const auto heads = dense_spec_of(
      "MistralForCausalLM", R"("num_key_value_heads":null,"head_dim":null,"rms_norm_eps":null)");
  ASSERT_TRUE(heads) << error_of(heads);
  EXPECT_EQ(attention(*heads).num_kv_heads, 32);
  EXPECT_EQ(attention(*heads).head_dim, 16);
}

TEST(Family, ReadsLayerTypesForEveryLayerOrRefusesThem) {
  const auto types = [](std::string_view list) {
    return concat({R"("sliding_window":8,"layer_types":[)", list, "]"});
  };
  constexpr std::string_view kGood =
      R"("full_attention","sliding_attention","full_attention","sliding_attention")";
  for (const char* architecture :
       {"Gemma2ForCausalLM", "Gemma3ForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}) {
    const std::string window =
        std::string_view(architecture).starts_with("Qwen") ? R"(,"use_sliding_window":true)" : "";
    const auto spec = dense_spec_of(architecture, types(kGood) + window);
    ASSERT_TRUE(spec) << architecture << ": " << error_of(spec);
    for (size_t i = 0; i < 4; ++i)
      EXPECT_EQ(attention(*spec, i).window, i % 2 == 0 ? 0 : 8) << architecture << " " << i;
    expect_error(dense_spec_of(architecture, types(R"("full_attention")") + window),
                 "layer_types: expected one for each of 4 layers, found 1");
    expect_error(dense_spec_of(architecture, types("") + window), "of 4 layers, found 0");
    expect_error(
        dense_spec_of(architecture, types(concat({kGood, R"(,"full_attention")"})) + window),
        "of 4 layers, found 5");
    expect_error(
        dense_spec_of(
            architecture,
            types(R"("full_attention","chunked_attention","full_attention","x")") + window),
        "layer_types[1]: expected sliding_attention or full_attention, found "
        "\"chunked_attention\"");
  }
}

TEST(Family, Gemma3sSlidingLayersHaveTheirOwnRope) {
  const auto thetas = [](std::string_view more) {
    const auto spec =
        dense_spec_of("Gemma3ForCausalLM",
                      concat({R"("sliding_window_pattern":4)", more.empty() ? "" : ",", more}));
    EXPECT_TRUE(spec) << error_of(spec);
    return spec ? std::pair(attention(*spec, 0).rope.theta, attention(*spec, 3).rope.theta)
                : std::pair(0.0f, 0.0f);
  };
  EXPECT_EQ(thetas(""), std::pair(1e4f, 1e6f));
  EXPECT_EQ(thetas(R"("rope_local_base_freq":5000)"), std::pair(5e3f, 1e6f));
  EXPECT_EQ(thetas(R"("rope_parameters":{"rope_theta":2000000})"), std::pair(1e4f, 2e6f));
  EXPECT_EQ(thetas(R"("rope_parameters":{"full_attention":{"rope_theta":2000000}})"),
            std::pair(1e4f, 2e6f));
  EXPECT_EQ(
      thetas(
          R"("rope_theta":3000000,"rope_parameters":{"sliding_attention":{"rope_type":"default"},)"
          R"("full_attention":{"rope_type":"default"}})"),
      std::pair(1e4f, 3e6f));
}

TEST(Family, WhatIsNearToOthersAndNotComputedIsRefusedByName) {
  expect_error(spec_of("Gemma4UnifiedForConditionalGeneration"), "without a vision tower");
  expect_error(spec_of("Qwen2_5OmniModel"), "its talker are not computed");
}

TEST(Family, RefusesNumbersThatNoModelHas) {
  const auto llama = [](std::string_view more) { return dense_spec_of("LlamaForCausalLM", more); };
  expect_error(llama(R"("rms_norm_eps":-1)"), "at least 0 by rms_norm_eps, found -1");
  expect_error(llama(R"("rms_norm_eps":1e300)"), "rms_norm_eps, found inf");
  expect_error(llama(R"("rope_theta":1e300)"), "rope_theta above 1, found inf");
  expect_error(llama(R"("rope_scaling":{"type":"linear","factor":0})"), "by factor, found 0");
  expect_error(llama(R"("rope_scaling":{"type":"yarn","factor":4,"attention_factor":-2})"),
               "by attention_factor, found -2");
  expect_error(llama(R"("rope_scaling":{"type":"yarn","factor":4,"beta_slow":0})"),
               "by beta_slow, found 0");
  expect_error(llama(R"("rope_scaling":{"type":"llama3","factor":4,"low_freq_factor":4,)"
                     R"("high_freq_factor":4})"),
               "high_freq_factor above");
  expect_error(
      llama(R"("rope_scaling":{"type":"dynamic","factor":4},"partial_rotary_factor":0.125)"),
      "more than 2 rotary dimensions");
  const std::string factors = R"([1,1,1,1,1,1,1,1])", zero = R"([1,1,1,0,1,1,1,1])";
  expect_error(dense_spec_of("Phi3ForCausalLM",
                             concat({R"("rope_scaling":{"type":"longrope","short_factor":)", zero,
                                     R"(,"long_factor":)", factors, "}"})),
               "by short_factor, found 0");
  expect_error(dense_spec_of("Phi3ForCausalLM",
                             concat({R"("rope_scaling":{"type":"longrope","short_factor":)",
                                     factors, R"(,"long_factor":)", zero, "}"})),
               "by long_factor, found 0");
  for (const char* value : {"0", "-1"}) {
    expect_error(dense_spec_of("Gemma2ForCausalLM", concat({R"("query_pre_attn_scalar":)", value})),
                 "by query_pre_attn_scalar");
    for (const char* key :
         {"logits_scaling", "attention_multiplier", "residual_multiplier", "embedding_multiplier"})
      expect_error(dense_spec_of("GraniteForCausalLM", concat({"\"", key, "\":", value})), key);
  }
  for (const char* key : {"final_logit_softcapping", "attn_logit_softcapping"})
    expect_error(dense_spec_of("Gemma2ForCausalLM", concat({"\"", key, "\":-1"})), key);
}

TEST(Family, RefusesWidthsThatNoModelHas) {
  const auto with_width = [](std::string_view architecture, std::string_view key) {
    std::string keys;
    for (const char* each :
         {"intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size"})
      if (key == each || std::string_view(each) == "intermediate_size" ||
          (architecture.starts_with("Qwen") && std::string_view(each) == "moe_intermediate_size"))
        keys += concat({",\"", each, "\":", key == each ? "2000000000" : "64"});
    auto doc = JsonDoc::parse(concat(
        {R"({"architectures":[")", architecture,
         R"("],"vocab_size":256,"hidden_size":512,"num_hidden_layers":4,"num_attention_heads":32,)",
         R"("max_position_embeddings":128)", keys, "}"}));
    return spec_from_config(doc->root());
  };
  for (const char* architecture :
       {"LlamaForCausalLM", "GraniteForCausalLM", "MistralForCausalLM", "MixtralForCausalLM",
        "Phi3ForCausalLM", "OlmoeForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM",
        "Qwen3MoeForCausalLM", "Gemma2ForCausalLM", "Gemma3ForCausalLM"})
    expect_error(with_width(architecture, "intermediate_size"), "from 1 to 1048576");
  expect_error(with_width("Qwen3MoeForCausalLM", "moe_intermediate_size"), "from 1 to 1048576");
  expect_error(with_width("Qwen2MoeForCausalLM", "shared_expert_intermediate_size"),
               "from 1 to 1048576");
}

}  // namespace
}  // namespace weir::model
