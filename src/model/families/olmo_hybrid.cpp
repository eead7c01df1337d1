// OLMo Hybrid: gated delta nets with norms before sublayers, and after each three of them a layer
// of OLMo 3's attention, with norms after sublayers, and mostly without rope.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.vocab_size = 100352, .num_attention_heads = 30, .context = 65536};

GatedDelta gated_delta(const ConfigReader& c, int heads) {
  GatedDelta d;
  d.key_heads = c.int_or("linear_num_key_heads", heads, 1);
  d.value_heads = c.int_or("linear_num_value_heads", heads, 1);
  const int share = 3 * c.require_int("hidden_size", 1) / (4 * std::max(d.key_heads, 1));
  d.key_dim = c.int_or("linear_key_head_dim", share);
  d.value_dim = c.int_or("linear_value_head_dim", 2 * d.key_dim);
  d.conv_taps = c.int_or("linear_conv_kernel_dim", 4);
  d.beta_most = c.bool_or("linear_allow_neg_eigval", true) ? 2.0f : 1.0f;
  d.norm_eps = 1e-5f;  // Whatever rms_norm_eps is.
  return d;
}

Attention attention(const ConfigReader& c) {
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  attn.qk_norm = Attention::kAllHeads;
  attn.qk_norm_eps = rms(c, kDefaults).eps;
  // rope_parameters that say nothing ask for none; null asks for the usual ones.
  const auto r = c.child("rope_parameters");
  if (r && (r->is_null("rope_theta") || !(r->has("rope_theta") || r->has("rope_type"))))
    attn.rope.dim = 0;
  return attn;
}

}  // namespace

ModelSpec olmo_hybrid(const ConfigReader& c) {
  for (const char* key : {"linear_a_log_max", "linear_a_log_min", "linear_dt_init_floor",
                          "linear_dt_max", "linear_dt_min"})
    c.ignore(key);  // Of new weights.
  ModelSpec m = decoder(c, kDefaults);
  const Attention attn = attention(c);
  const GatedDelta delta = gated_delta(c, attn.num_heads);
  const Dense ffn = gated_ffn(c, "intermediate_size");
  const int last = num_layers(c) - 1;
  const std::vector<bool> linear = layers_of_type(c, "linear_attention", [=](int layer) {
    return layer % 4 != 3 && (last >= 3 || layer != last);
  });
  for (const bool is_linear : linear)
    add_layer(m,
              is_linear ? pre_norm(m.final_norm, delta, ffn) : post_norm(m.final_norm, attn, ffn));
  for (const auto& [part, stored] : {std::pair{"input_layernorm", "attention_layer_norm"},
                                     {"post_attention_layernorm", "feedforward_layer_norm"}}) {
    m.renames.emplace_back(part, part);  // As later versions write them.
    m.renames.emplace_back(part, stored);
  }
  return m;
}

}  // namespace weir::model::family
