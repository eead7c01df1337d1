// Arcee's Trinity: norms before and after each sublayer, heads multiplied by gates, Q and K
// normalised; three sliding layers, then one that attends to everything and has no rope. Experts by
// DeepSeek V3's routing after some dense layers.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f, .head_dim = 128};
constexpr BiasedExperts kExperts = {.count_key = "num_experts",
                                    .count = 64,
                                    .top_k = 6,
                                    .shared_key = "num_shared_experts",
                                    .shared = 2};

}  // namespace

ModelSpec afmoe(const ConfigReader& c) {
  for (const char* key : {"load_balance_coeff", "use_grouped_mm", "global_attn_every_n_layers"})
    c.ignore(key);  // Of training, which kernels, and read below where layer_types is missing.
  for (const char* key : {"num_expert_groups", "num_limited_groups"}) c.expect_int(key, 1);
  c.expect_bool("attention_bias", false);
  expect_string(c, "score_func", "sigmoid");
  ModelSpec m = decoder(c, kDefaults);
  if (c.bool_or("mup_enabled", false)) m.embed_scale = std::sqrt(static_cast<float>(m.hidden_size));
  Attention full = gqa(c, kDefaults);
  full.qk_norm = Attention::kPerHead;
  full.qk_norm_eps = m.final_norm.eps;
  full.out_gate = Attention::kOwnModule;
  Attention sliding = full;
  sliding.window = sliding_window(c, 1024);
  full.rope = {};
  const Dense dense = gated_ffn(c, "intermediate_size");
  Moe moe = biased_moe(c, kExperts);
  moe.router.scale = c.float_or("route_scale", 1);
  moe.router.renormalise = c.bool_or("route_norm", true);
  const int first = c.int_or("num_dense_layers", 1, 0);
  const int interval = c.int_or("global_attn_every_n_layers", 4, 1);
  for (const bool slides : sliding_layers(c, [=](int i) { return (i + 1) % interval != 0; }))
    add_layer(m, sandwich_norm(m.final_norm, slides ? sliding : full,
                               layer_count(m) < first ? Operation{dense} : Operation{moe}));
  m.renames = {{"pre_feedforward_layernorm", "pre_mlp_layernorm"},
               {"post_feedforward_layernorm", "post_mlp_layernorm"},
               {"mlp.gate", "mlp.router.gate"},
               {"mlp.gate.e_score_correction_bias", "mlp.expert_bias"}};
  rename_shared(m, "mlp.shared_experts");
  return m;
}

}  // namespace weir::model::family
