// MiniMax M2: Q and K are normalised over all heads together, part of a head turns, and every layer
// routes to experts by sigmoid with a bias.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rope_theta = 5e6f, .num_key_value_heads = 8, .head_dim = 128};

}  // namespace

ModelSpec minimax_m2(const ConfigReader& c) {
  for (const char* key :
       {"layernorm_full_attention_beta", "layernorm_linear_attention_beta", "layernorm_mlp_beta",
        "num_mtp_modules", "mtp_transformer_layers", "use_mtp"})
    c.ignore(key);  // Of the family's other models, and of layers that guess further tokens.
  if (std::ranges::count(c.ints("attn_type_list"), 1) != std::ssize(c.ints("attn_type_list")))
    c.reject("attn_type_list: expected 1 for every layer (attention to all tokens)");
  c.expect_int("shared_intermediate_size", 0);
  c.expect_bool("use_routing_bias", true);
  expect_string(c, "qk_norm_type", "per_layer");
  expect_string(c, "scoring_func", "sigmoid");
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  attn.rope.dim = c.int_or("rotary_dim", attn.rope.dim, 0);
  if (c.bool_or("use_qk_norm", true)) attn.qk_norm = Attention::kAllHeads;
  attn.qk_norm_eps = m.final_norm.eps;
  const Moe moe = {
      .num_experts = c.int_or("num_local_experts", 256, 1),
      .top_k = c.int_or("num_experts_per_tok", 8, 1),
      .expert = gated_ffn(c, "intermediate_size"),
      .router = {.score = Router::kSigmoid, .selection_bias = true, .renormalise = true}};
  add_layers(m, num_layers(c), pre_norm(m.final_norm, attn, moe));
  rename_block_sparse(m);
  m.renames.emplace_back("mlp.gate.e_score_correction_bias",
                         "block_sparse_moe.e_score_correction_bias");
  return m;
}

}  // namespace weir::model::family
