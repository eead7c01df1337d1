// Ling: Q, K and V in one module, experts chosen by softmax or by sigmoid with a bias, in groups.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults;

// What the two versions of the family take for missing keys.
struct Version {
  bool biased, qk_norm;
  const char* score;
  int groups, groups_kept;
  float scale;
};
constexpr Version kV1 = {false, false, "softmax", 1, 1, 1};
constexpr Version kV2 = {true, true, "sigmoid", 8, 4, 2.5f};

Router router(const ConfigReader& c, const Version& version) {
  const std::string score = c.string_or("score_function", version.score);
  if (score != "softmax" && score != "sigmoid")
    c.reject("score_function: expected softmax or sigmoid, found \"" + score.substr(0, 80) + "\"");
  return {.score = score == "sigmoid" ? Router::kSigmoid : Router::kSoftmax,
          .selection_bias = c.bool_or("moe_router_enable_expert_bias", version.biased),
          .group_score = Router::kTwoBest,
          .groups = std::max(c.int_or("n_group", version.groups, 0), 1),
          .groups_kept = std::max(c.int_or("topk_group", version.groups_kept, 0), 1),
          .renormalise = c.bool_or("norm_topk_prob", true),
          .epsilon = 1e-20f,
          .scale = c.float_or("routed_scaling_factor", version.scale)};
}

Moe experts(const ConfigReader& c, const Version& version) {
  Moe moe = {.num_experts = c.int_or("num_experts", 16, 1),
             .top_k = c.int_or("num_experts_per_tok", 2, 1),
             .expert = gated_ffn(c, "moe_intermediate_size"),
             .router = router(c, version)};
  Dense shared = moe.expert;
  shared.width = c.int_or("moe_shared_expert_intermediate_size", shared.width, 1);
  moe.shared = shared_experts(shared, c.int_or("num_shared_experts", 0, 0, 64));
  return moe;
}

ModelSpec bailing(const ConfigReader& c, const Version& version) {
  for (const char* key : {"norm_head", "norm_softmax"}) c.expect_bool(key, false);
  for (const char* key : {"output_dropout", "embedding_dropout", "max_window_layers"})
    c.ignore(key);
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  attn.rope.dim = c.int_or("rotary_dim", attn.rope.dim, 0);
  attn.qkv_bias = c.bool_or("use_qkv_bias", false);
  attn.out_bias = c.bool_or("use_bias", false);
  if (c.bool_or("use_qk_norm", version.qk_norm)) attn.qk_norm = Attention::kPerHead;
  attn.qk_norm_eps = m.final_norm.eps;
  const Moe moe = experts(c, version);
  Dense dense = gated_ffn(c, "intermediate_size");
  const int first = c.int_or("first_k_dense_replace", 0, 0);
  for (int i = 0; i < num_layers(c); ++i)
    add_layer(m, pre_norm(m.final_norm, attn, i < first ? Operation{dense} : Operation{moe}));
  m.guessing_layers = c.int_or("num_nextn_predict_layers", 0, 0, 64);
  m.renames = {{"embed_tokens", "model.word_embeddings"},
               {"self_attn.o_proj", "attention.dense"},
               {"self_attn.q_norm", "attention.query_layernorm"},
               {"self_attn.k_norm", "attention.key_layernorm"},
               {"mlp.gate", "mlp.gate"},
               {"mlp.gate", "mlp.gate.gate_proj"},
               {"mlp.gate.e_score_correction_bias", "mlp.gate.expert_bias"}};
  rename_shared(m, "mlp.shared_experts");
  m.fused = {
      {"attention.query_key_value", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}}};
  return m;
}

}  // namespace

ModelSpec bailing_moe(const ConfigReader& c) { return bailing(c, kV1); }
ModelSpec bailing_moe_v2(const ConfigReader& c) { return bailing(c, kV2); }

}  // namespace weir::model::family
