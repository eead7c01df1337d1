// Mistral: Llama with a sliding window on every layer or none. Mixtral: the same with routed
// experts, under names of its own (w1, w3, w2 = gate, up, down).
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kMistral = {.num_key_value_heads = 8};
constexpr Defaults kMixtral = {.rms_norm_eps = 1e-5f, .rope_theta = 1e6f, .num_key_value_heads = 8};

Attention windowed(const ConfigReader& c, const Defaults& defaults, int window) {
  Attention attn = gqa(c, defaults);
  attn.window = sliding_window(c, window);
  c.expect_bool("attention_bias", false);
  return attn;
}

}  // namespace

ModelSpec mistral(const ConfigReader& c) {
  ModelSpec m = decoder(c, kMistral);
  const Dense ffn = gated_ffn(c, "intermediate_size");
  add_layers(m, num_layers(c), pre_norm(m.final_norm, windowed(c, kMistral, 4096), ffn));
  return m;
}

ModelSpec mixtral(const ConfigReader& c) {
  ModelSpec m = decoder(c, kMixtral);
  const Moe ffn = {
      .num_experts = c.int_or("num_local_experts", 8, 1),
      .top_k = c.int_or("num_experts_per_tok", 2, 1),
      .expert = gated_ffn(c, "intermediate_size"),
      .router = {.score = Router::kSoftmax, .renormalise = true},
  };
  add_layers(m, num_layers(c), pre_norm(m.final_norm, windowed(c, kMixtral, 0), ffn));
  rename_block_sparse(m);
  return m;
}

}  // namespace weir::model::family
