// Phi with experts: layer norms and biases everywhere, two experts by the sparse mixer's routing.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {
    .rms_norm_eps = 1e-5f, .rope_theta = 1e6f, .num_key_value_heads = 8};

}  // namespace

ModelSpec phimoe(const ConfigReader& c) {
  c.ignore("input_jitter_noise");  // Of training.
  c.expect_int("num_experts_per_tok", 2);
  ModelSpec m = decoder(c, kDefaults);
  m.final_norm.kind = Norm::kLayer;
  m.final_norm.bias = true;
  m.head_bias = c.bool_or("lm_head_bias", false);
  Attention attn = gqa(c, kDefaults);
  attn.window = sliding_window(c, 0);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  const Moe moe = {.num_experts = c.int_or("num_local_experts", 16, 2),
                   .top_k = 2,
                   .expert = gated_ffn(c, "intermediate_size"),
                   .router = {.score = Router::kSparseMixer,
                              .jitter = c.float_or("router_jitter_noise", 0.01f)}};
  add_layers(m, num_layers(c), pre_norm(m.final_norm, attn, moe));
  rename_block_sparse(m);
  return m;
}

}  // namespace weir::model::family
