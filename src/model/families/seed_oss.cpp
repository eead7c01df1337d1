// Seed-OSS: Llama with biases on Q, K and V, and others that config.json may switch on.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.num_key_value_heads = 8, .head_dim = 128};

}  // namespace

ModelSpec seed_oss(const ConfigReader& c) {
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = c.bool_or("attention_bias", true);
  attn.out_bias = c.bool_or("attention_out_bias", false);
  Dense ffn = gated_ffn(c, "intermediate_size");
  ffn.bias = c.bool_or("mlp_bias", false);
  return pre_norm_model(c, kDefaults, attn, ffn);
}

}  // namespace weir::model::family
