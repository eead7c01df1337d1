// MiMo V2 Flash: sliding layers have heads, a rope and sinks of their own; values are narrower than
// keys; experts by DeepSeek V3's routing where moe_layer_freq says so.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rope_theta = 5e6f, .partial_rotary_factor = 0.334f};

// 0 or 1 for each layer.
std::vector<int> marks(const ConfigReader& c, const char* key) {
  std::vector<int> out = c.ints(key, 0);
  const auto layers = static_cast<size_t>(num_layers(c));
  if (out.size() != layers)
    c.reject(std::string(key) + ": expected one for each of " + std::to_string(layers) +
             " layers, found " + std::to_string(out.size()));
  out.resize(layers);
  return out;
}

Attention sliding_attention(const ConfigReader& c, const Attention& full) {
  Attention a = full;
  a.num_heads = c.int_or("swa_num_attention_heads", full.num_heads, 1);
  a.num_kv_heads = c.int_or("swa_num_key_value_heads", full.num_kv_heads, 1);
  a.head_dim = c.int_or("swa_head_dim", full.head_dim, 1, 1 << 20);
  a.v_head_dim = c.int_or("swa_v_head_dim", full.v_head_dim, 0);
  a.scale = 1 / std::sqrt(static_cast<float>(a.head_dim));
  a.window = c.int_or("sliding_window", c.int_or("sliding_window_size", 128, 1), 1);
  c.ignore("sliding_window_size");  // The same once more.
  a.rope = rope(c, a.head_dim, kDefaults.rope_theta, "sliding_attention",
                kDefaults.partial_rotary_factor);
  a.rope.theta = c.float_or("swa_rope_theta", c.has("rope_parameters") ? a.rope.theta : 10000);
  a.sinks = c.bool_or("add_swa_attention_sink_bias", true);
  return a;
}

}  // namespace

ModelSpec mimo_v2_flash(const ConfigReader& c) {
  c.expect_absent("attention_value_scale");
  ModelSpec m = decoder(c, kDefaults);
  m.final_norm.eps = c.float_or("layernorm_epsilon", 1e-5f);
  Attention full = gqa(c, kDefaults);
  full.qkv_bias = c.bool_or("attention_bias", false);
  full.v_head_dim = c.int_or("v_head_dim", 0, 0);
  full.sinks = c.bool_or("add_full_attention_sink_bias", false);
  const Attention sliding = sliding_attention(c, full);
  const Moe moe = biased_moe(c, {.count = 256, .shared = 0});
  const Dense dense = gated_ffn(c, "intermediate_size");
  const std::vector<int> slides = marks(c, "hybrid_layer_pattern");
  const std::vector<int> sparse = marks(c, "moe_layer_freq");
  for (size_t i = 0; i < slides.size(); ++i)
    add_layer(m, pre_norm(m.final_norm, slides[i] ? sliding : full,
                          sparse[i] ? Operation{moe} : Operation{dense}));
  m.renames = {{"self_attn.sinks", "self_attn.attention_sink_bias"}};
  rename_shared(m, "mlp.shared_experts");
  return m;
}

}  // namespace weir::model::family
