// Phi 1, 1.5 and 2: attention and a feed-forward network without gate side by side under one layer
// norm, biases everywhere, the head's included.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {
    .rms_norm_eps = 1e-5f, .partial_rotary_factor = 0.5f, .eps_key = "layer_norm_eps"};

}  // namespace

ModelSpec phi(const ConfigReader& c) {
  ModelSpec m = layer_norm_decoder(c, kDefaults);
  m.head_bias = true;
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = attn.out_bias = true;
  attn.qk_norm = c.bool_or("qk_layernorm", false) ? Attention::kPerHead : Attention::kNoQkNorm;
  attn.qk_norm_kind = Norm::kLayer;
  attn.qk_norm_bias = true;
  attn.qk_norm_eps = m.final_norm.eps;
  const Dense ffn = {.width = ffn_width(c, "intermediate_size"),
                     .act = activation(c, "hidden_act", "gelu_new"),
                     .gated = false,
                     .bias = true};
  add_layers(m, num_layers(c), parallel_norm(m.final_norm, attn, ffn));
  m.renames = {{"norm", "model.final_layernorm"},
               {"self_attn.o_proj", "self_attn.dense"},
               {"self_attn.q_norm", "self_attn.q_layernorm"},
               {"self_attn.k_norm", "self_attn.k_layernorm"},
               {"mlp.up_proj", "mlp.fc1"},
               {"mlp.down_proj", "mlp.fc2"}};
  return m;
}

}  // namespace weir::model::family
