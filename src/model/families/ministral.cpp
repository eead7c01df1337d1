// Ministral: Mistral of which layer_types says which layers slide. Ministral 3: yarn, and queries
// that grow with their position.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kMinistral = {.num_key_value_heads = 8};
constexpr Defaults kMinistral3 = {
    .rms_norm_eps = 1e-5f, .rope_theta = 1e6f, .num_key_value_heads = 8, .head_dim = 128};

// All layers slide unless layer_types says which do.
ModelSpec windowed(const ConfigReader& c, const Defaults& defaults, const Attention& full,
                   int window) {
  c.expect_bool("attention_bias", false);
  ModelSpec m = decoder(c, defaults);
  Attention sliding = full;
  sliding.window = sliding_window(c, window);
  const Dense ffn = gated_ffn(c, "intermediate_size");
  for (const bool slides : sliding_layers(c, [](int) { return true; }))
    add_layer(m, pre_norm(m.final_norm, slides ? sliding : full, ffn));
  return m;
}

}  // namespace

ModelSpec ministral(const ConfigReader& c) {
  return windowed(c, kMinistral, gqa(c, kMinistral), 4096);
}

void grow_queries(const ConfigReader& c, float& beta, int& step) {
  std::optional<ConfigReader> rope = c.child("rope_parameters");
  if (!rope) rope = c.child("rope_scaling");
  if (!rope) return;
  rope->ignore("max_position_embeddings");  // Once more.
  if (!rope->has("llama_4_scaling_beta")) return;
  beta = rope->require_float("llama_4_scaling_beta");
  step = rope->require_int("original_max_position_embeddings", 1);
}

ModelSpec ministral3(const ConfigReader& c) {
  Attention attn = gqa(c, kMinistral3);
  if (!c.has("rope_parameters") && !c.has("rope_scaling")) {
    attn.rope = {.scaling = Rope::kYarn,
                 .theta = kMinistral3.rope_theta,
                 .dim = attn.head_dim,
                 .factor = 16,
                 .original_context = 16384};
    attn.position_beta = 0.1f;
    attn.position_step = 16384;
  } else {
    grow_queries(c, attn.position_beta, attn.position_step);
  }
  return windowed(c, kMinistral3, attn, 0);
}

}  // namespace weir::model::family
