// Baichuan M1: keys and values are convolved over a few tokens, some layers slide and have their
// own numbers of heads, and the head's rows count by their direction.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults;

Attention of_heads(const ConfigReader& c, Attention attn, int heads, int kv_heads) {
  attn.num_heads = heads;
  attn.num_kv_heads = kv_heads;
  attn.head_dim = c.require_int("hidden_size", 1) / std::max(heads, 1);
  attn.rope.dim = attn.head_dim;
  attn.scale = 1 / std::sqrt(static_cast<float>(std::max(attn.head_dim, 1)));
  return attn;
}

}  // namespace

ModelSpec baichuan_m1(const ConfigReader& c) {
  ModelSpec m = decoder(c, kDefaults);
  m.unit_head = !m.tied_head;
  Attention full = gqa(c, kDefaults);
  full.conv_taps = c.int_or("conv_window", 2, 2);
  Attention sliding = of_heads(c, full, c.int_or("num_swa_attention_heads", full.num_heads, 1),
                               c.int_or("num_swa_key_value_heads", full.num_kv_heads, 1));
  sliding.window = sliding_window(c, 0);
  const Dense ffn = gated_ffn(c, "intermediate_size");
  const std::vector<int> slides = c.ints("sliding_window_layers", 0);
  for (int i = 0; i < num_layers(c); ++i) {
    const bool here = std::ranges::find(slides, i) != slides.end();
    add_layer(m, pre_norm(m.final_norm, here ? sliding : full, ffn));
  }
  m.fused = {{"self_attn.W_pack", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}}};
  return m;
}

}  // namespace weir::model::family
