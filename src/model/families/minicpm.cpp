// MiniCPM: Llama with scaled embeddings, sublayers and logits.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.tied_head = true};

}  // namespace

ModelSpec minicpm(const ConfigReader& c) {
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  ModelSpec m = pre_norm_model(c, kDefaults, attn, gated_ffn(c, "intermediate_size"));
  c.ignore("mup_denominator");  // Of layers that guess further tokens.
  m.embed_scale = c.float_or("scale_emb", 1);
  m.logit_scale = c.float_or("dim_model_base", 1) / static_cast<float>(std::max(m.hidden_size, 1));
  const float depth = std::sqrt(static_cast<float>(std::max(num_layers(c), 1)));
  for (Sublayer& sublayer : m.sublayers) sublayer.scale = c.float_or("scale_depth", 1) / depth;
  return m;
}

}  // namespace weir::model::family
