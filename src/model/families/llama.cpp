// Llama, and what differs from it by multipliers only: Granite.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults;

ModelSpec dense(const ConfigReader& c, Attention attn) {
  ModelSpec m = decoder(c, kDefaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  Dense ffn = gated_ffn(c, "intermediate_size");
  ffn.bias = c.bool_or("mlp_bias", false);
  c.expect_int("pretraining_tp", 1);
  add_layers(m, num_layers(c), pre_norm(m.final_norm, attn, ffn));
  return m;
}

}  // namespace

void granite_multipliers(const ConfigReader& c, ModelSpec& m) {
  m.embed_scale = c.float_or("embedding_multiplier", 1);
  m.logit_scale = 1 / c.float_or("logits_scaling", 1);
  for (Sublayer& sublayer : m.sublayers) sublayer.scale = c.float_or("residual_multiplier", 1);
}

ModelSpec llama(const ConfigReader& c) { return dense(c, gqa(c, kDefaults)); }

ModelSpec granite(const ConfigReader& c) {
  Attention attn = gqa(c, kDefaults);
  attn.scale = c.float_or("attention_multiplier", 1);
  ModelSpec m = dense(c, attn);
  granite_multipliers(c, m);
  return m;
}

}  // namespace weir::model::family
