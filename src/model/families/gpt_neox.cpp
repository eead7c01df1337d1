// GPT-NeoX and Pythia: layer norms and biases, Q, K and V of a head together, and attention and a
// feed-forward network without gate side by side, each under a norm of its own, or in turn.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {
    .rms_norm_eps = 1e-5f, .partial_rotary_factor = 0.25f, .eps_key = "layer_norm_eps"};

}  // namespace

ModelSpec gpt_neox(const ConfigReader& c) {
  Defaults defaults = kDefaults;  // With the older keys of rope.
  defaults.rope_theta = c.float_or("rotary_emb_base", kDefaults.rope_theta);
  defaults.partial_rotary_factor = c.float_or("rotary_pct", kDefaults.partial_rotary_factor);
  ModelSpec m = layer_norm_decoder(c, defaults);
  Attention attn = gqa(c, defaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", true);
  const Dense ffn = {.width = ffn_width(c, "intermediate_size"),
                     .act = activation(c, "hidden_act", "gelu"),
                     .gated = false,
                     .bias = true};
  std::vector<Sublayer> layer = pre_norm(m.final_norm, attn, ffn);
  layer[0].late = c.bool_or("use_parallel_residual", true);
  add_layers(m, num_layers(c), layer);
  m.layers = "gpt_neox.layers.";
  m.other_layers = {"model.h."};  // mlx-lm's names.
  m.fused = {{"attention.query_key_value",
              {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
              attn.num_heads}};
  m.renames = {{"embed_tokens", "gpt_neox.embed_in"},
               {"embed_tokens", "model.embed_in"},
               {"norm", "gpt_neox.final_layer_norm"},
               {"norm", "model.final_layer_norm"},
               {"lm_head", "embed_out"},
               {"lm_head", "model.embed_out"},
               {"self_attn.o_proj", "attention.dense"},
               {"mlp.up_proj", "mlp.dense_h_to_4h"},
               {"mlp.down_proj", "mlp.dense_4h_to_h"}};
  return m;
}

}  // namespace weir::model::family
