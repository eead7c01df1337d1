// Nemotron (3 and 4, Minitron): layer norms whose weights are stored as w and mean 1 + w, half of a
// head turns, and a feed-forward network without gate, of squared ReLUs.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.norm_offset = 1};

}  // namespace

ModelSpec nemotron(const ConfigReader& c) {
  Defaults defaults = kDefaults;
  defaults.partial_rotary_factor = c.float_or("rope_percent", 0.5f);  // The older key.
  ModelSpec m = decoder(c, defaults);
  m.final_norm.kind = Norm::kLayer;
  m.final_norm.eps = c.float_or("norm_eps", 1e-5f);
  m.final_norm.bias = true;
  Attention attn = gqa(c, defaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  const Dense ffn = {.width = ffn_width(c, "intermediate_size"),
                     .act = activation(c, "hidden_act", "relu2"),
                     .gated = false,
                     .bias = c.bool_or("mlp_bias", false)};
  add_layers(m, num_layers(c), pre_norm(m.final_norm, attn, ffn));
  return m;
}

}  // namespace weir::model::family
