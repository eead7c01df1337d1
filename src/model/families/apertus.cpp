// Apertus: normalised heads, and a feed-forward network without gate, of xIELUs, whose numbers each
// layer has learned.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f, .rope_theta = 12e6f};

}  // namespace

ModelSpec apertus(const ConfigReader& c) {
  c.expect_bool("qk_norm", true);
  c.expect_bool("post_norm", false);
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  attn.qk_norm = Attention::kPerHead;
  attn.qk_norm_eps = m.final_norm.eps;
  const bool says_scaling =
      c.has("rope_parameters") || c.has("rope_scaling") || c.is_null("rope_scaling");
  if (!says_scaling) {
    attn.rope.scaling = Rope::kLlama3;
    attn.rope.factor = 8;
    attn.rope.original_context = 8192;
  }
  Dense ffn = {.width = ffn_width(c, "intermediate_size"), .gated = false};
  ffn.xielu = c.string_or("hidden_act", "xielu") == "xielu";
  if (!ffn.xielu) ffn.act = activation(c, "hidden_act", "");
  std::vector<Sublayer> layer = pre_norm(m.final_norm, attn, ffn);
  layer[0].pre->module = "attention_layernorm";
  layer[1].pre->module = "feedforward_layernorm";
  add_layers(m, num_layers(c), layer);
  return m;
}

}  // namespace weir::model::family
