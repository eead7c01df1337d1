// OLMo: layer norms without weights, and a limit on Q, K and V. OLMo 2: norms after sublayers; Q
// and K are normalised over all heads together. OLMo 3: the same with three sliding layers, then
// one that attends to everything; rope is stretched there alone.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kOlmo;
constexpr Defaults kOlmo2 = {.rms_norm_eps = 1e-5f};
constexpr Defaults kOlmo3 = {.rms_norm_eps = 1e-5f, .rope_theta = 5e5f};

Attention normalised(const ConfigReader& c, const Defaults& defaults) {
  Attention attn = gqa(c, defaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  attn.qk_norm = Attention::kAllHeads;
  attn.qk_norm_eps = rms(c, defaults).eps;
  return attn;
}

}  // namespace

ModelSpec olmo(const ConfigReader& c) {
  ModelSpec m = decoder(c, kOlmo);
  m.final_norm.kind = Norm::kLayer;
  m.final_norm.eps = 1e-5f;
  m.final_norm.weight = false;
  Attention attn = gqa(c, kOlmo);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  attn.qkv_limit = softcap(c, "clip_qkv", 0);
  add_layers(m, num_layers(c), pre_norm(m.final_norm, attn, gated_ffn(c, "intermediate_size")));
  return m;
}

ModelSpec olmo2(const ConfigReader& c) {
  ModelSpec m = decoder(c, kOlmo2);
  add_layers(m, num_layers(c),
             post_norm(m.final_norm, normalised(c, kOlmo2), gated_ffn(c, "intermediate_size")));
  return m;
}

ModelSpec olmo3(const ConfigReader& c) {
  ModelSpec m = decoder(c, kOlmo3);
  const Attention full = normalised(c, kOlmo3);
  Attention sliding = full;
  sliding.window = sliding_window(c, 4096);
  sliding.rope = sliding_rope(c, full, full.rope.theta);
  const Dense ffn = gated_ffn(c, "intermediate_size");
  for (const bool slides : sliding_layers(c, [](int layer) { return (layer + 1) % 4 != 0; }))
    add_layer(m, post_norm(m.final_norm, slides ? sliding : full, ffn));
  return m;
}

}  // namespace weir::model::family
