// Arcee: Llama with a feed-forward network without gate, of squared ReLUs.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f};

}  // namespace

ModelSpec arcee(const ConfigReader& c) {
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  const Dense ffn = {.width = ffn_width(c, "intermediate_size"),
                     .act = activation(c, "hidden_act", "relu2"),
                     .gated = false,
                     .bias = c.bool_or("mlp_bias", false)};
  return pre_norm_model(c, kDefaults, attn, ffn);
}

}  // namespace weir::model::family
