// ERNIE 4.5, dense: Llama with rope that turns neighbours.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f,
                                .rope_theta = 5e5f,
                                .num_key_value_heads = 2,
                                .head_dim = 128,
                                .tied_head = true};

}  // namespace

ModelSpec ernie4_5(const ConfigReader& c) {
  Attention attn = gqa(c, kDefaults);
  attn.rope.layout = Rope::kInterleaved;
  attn.qkv_bias = attn.out_bias = c.bool_or("use_bias", false);
  Dense ffn = gated_ffn(c, "intermediate_size");
  ffn.bias = attn.qkv_bias;
  return pre_norm_model(c, kDefaults, attn, ffn);
}

}  // namespace weir::model::family
