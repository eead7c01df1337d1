// BitNet: Llama with gates of squared ReLUs, and a norm before each projection back: of what the
// heads have attended, and of the inner activations. Its weights are ternary (model/rows).
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f, .rope_theta = 500000};

}  // namespace

ModelSpec bitnet(const ConfigReader& c) {
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  Norm norm = m.final_norm;
  norm.module = "self_attn.attn_sub_norm";
  attn.out_norm = norm;
  Dense ffn = {.width = ffn_width(c, "intermediate_size"),
               .act = activation(c, "hidden_act", "relu2"),
               .gated = true};
  norm.module = "mlp.ffn_sub_norm";
  ffn.inner_norm = norm;
  add_layers(m, num_layers(c), pre_norm(m.final_norm, attn, ffn));
  return m;
}

}  // namespace weir::model::family
