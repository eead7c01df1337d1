// OLMoE: Q and K are normalised over all heads together; every layer routes to experts, without
// renormalising their weights.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f};

}  // namespace

ModelSpec olmoe(const ConfigReader& c) {
  c.expect_absent("clip_qkv");
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  attn.qk_norm = Attention::kAllHeads;
  attn.qk_norm_eps = m.final_norm.eps;
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  const Moe ffn = {
      .num_experts = c.int_or("num_experts", 64, 1),
      .top_k = c.int_or("num_experts_per_tok", 8, 1),
      .expert = gated_ffn(c, "intermediate_size"),
      .router = {.score = Router::kSoftmax, .renormalise = c.bool_or("norm_topk_prob", false)},
  };
  add_layers(m, num_layers(c), pre_norm(m.final_norm, attn, ffn));
  return m;
}

}  // namespace weir::model::family
