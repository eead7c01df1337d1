// Helium: Llama with rope that turns neighbours.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {
    .rms_norm_eps = 1e-8f, .rope_theta = 1e5f, .num_key_value_heads = 20, .head_dim = 128};

}  // namespace

ModelSpec helium(const ConfigReader& c) {
  Attention attn = gqa(c, kDefaults);
  attn.rope.layout = Rope::kInterleaved;
  attn.qkv_bias = c.bool_or("attention_bias", false);
  Dense ffn = gated_ffn(c, "intermediate_size");
  ffn.bias = c.bool_or("mlp_bias", false);
  return pre_norm_model(c, kDefaults, attn, ffn);
}

}  // namespace weir::model::family
