// Ministral: Mistral of which layer_types says which layers slide. Ministral 3: yarn, and queries
// that grow with their position.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kMinistral = {.num_key_value_heads = 8};
constexpr Defaults kMinistral3 = {
    .rms_norm_eps = 1e-5f, .rope_theta = 1e6f, .num_key_value_heads = 8, .head_dim = 128};

}  // namespace

ModelSpec ministral(const ConfigReader& c) {
  c.expect_bool("attention_bias", false);
  ModelSpec m = decoder(c, kMinistral);
  const Attention full = gqa(c, kMinistral);
  Attention sliding = full;
  sliding.window = sliding_window(c, 4096);
  const Dense ffn = gated_ffn(c, "intermediate_size");
  for (const bool slides : sliding_layers(c, [](int) { return true; }))
    add_layer(m, pre_norm(m.final_norm, slides ? sliding : full, ffn));
  return m;
}

ModelSpec ministral3(const ConfigReader& c) {
  c.expect_bool("attention_bias", false);
  Attention attn = gqa(c, kMinistral3);
  attn.window = sliding_window(c, 0);
  std::optional<ConfigReader> rope = c.child("rope_parameters");
  if (!rope) rope = c.child("rope_scaling");
  if (!rope) {
    attn.rope = {.scaling = Rope::kYarn,
                 .theta = kMinistral3.rope_theta,
                 .dim = attn.head_dim,
                 .factor = 16,
                 .original_context = 16384};
    attn.position_beta = 0.1f;
    attn.position_step = 16384;
  } else if (rope->has("llama_4_scaling_beta")) {
    attn.position_beta = rope->require_float("llama_4_scaling_beta");
    attn.position_step = rope->require_int("original_max_position_embeddings", 1);
  }
  if (rope) rope->ignore("max_position_embeddings");  // Once more.
  return pre_norm_model(c, kMinistral3, attn, gated_ffn(c, "intermediate_size"));
}

}  // namespace weir::model::family
