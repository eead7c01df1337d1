// Cohere's Command models: attention and feed-forward network side by side under one layer norm,
// rope that turns neighbours, scaled logits. Cohere2 (Command R7B, Command A): sliding layers, and
// full ones without rope.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kCohere = {.rope_theta = 5e5f, .tied_head = true};
constexpr Defaults kCohere2 = {.tied_head = true};

Norm layer_norm(const ConfigReader& c) {
  return {.kind = Norm::kLayer,
          .eps = c.float_or("layer_norm_eps", 1e-5f),
          .bias = c.bool_or("layer_norm_bias", false)};
}

ModelSpec cohere_decoder(const ConfigReader& c, const Defaults& defaults) {
  ModelSpec m = decoder(c, defaults);
  m.final_norm = layer_norm(c);
  m.final_norm.module = "norm";
  m.logit_scale = c.float_or("logit_scale", 0.0625f);
  return m;
}

Attention cohere_attention(const ConfigReader& c, const Defaults& defaults, const Norm& norm) {
  Attention attn = gqa(c, defaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  attn.rope.layout = Rope::kInterleaved;
  attn.qk_norm_kind = Norm::kLayer;
  attn.qk_norm_eps = norm.eps;
  return attn;
}

}  // namespace

ModelSpec cohere(const ConfigReader& c) {
  ModelSpec m = cohere_decoder(c, kCohere);
  Attention attn = cohere_attention(c, kCohere, m.final_norm);
  if (c.bool_or("use_qk_norm", false)) attn.qk_norm = Attention::kEachHead;
  const Dense ffn = gated_ffn(c, "intermediate_size");
  add_layers(m, num_layers(c), parallel_norm(m.final_norm, attn, ffn));
  return m;
}

ModelSpec cohere2(const ConfigReader& c) {
  for (const char* key : {"use_embedding_sharing", "use_gated_activation", "use_parallel_block"})
    c.expect_bool(key, true);
  c.expect_bool("use_qk_norm", false);
  c.ignore("use_parallel_embedding");  // How matrices are shared between devices.
  c.ignore("layer_switch");            // An older name of sliding_window_pattern, beside it.
  expect_string(c, "order_of_interleaved_layers", "local_attn_first");
  expect_string(c, "position_embedding_type", "rope_gptj");
  ModelSpec m = cohere_decoder(c, kCohere2);
  Attention full = cohere_attention(c, kCohere2, m.final_norm), sliding = full;
  sliding.window = sliding_window(c, 4096);
  full.rope = {};
  if (sliding.window == 0) sliding = full;
  const Dense ffn = gated_ffn(c, "intermediate_size");
  const int pattern = c.int_or("sliding_window_pattern", 4, 1);
  for (const bool slides : sliding_layers(c, [=](int layer) { return (layer + 1) % pattern != 0; }))
    add_layer(m, parallel_norm(m.final_norm, slides ? sliding : full, ffn));
  return m;
}

}  // namespace weir::model::family
