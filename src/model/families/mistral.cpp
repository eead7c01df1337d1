// Mistral: Llama with a sliding window on every layer or none. Mixtral: the same with routed
// experts, under names of its own (w1, w3, w2 = gate, up, down).
#include "model/families/family.h"

namespace weir::model::family {

namespace {

Attention windowed(const ConfigReader& c) {
  Attention attn = gqa(c);
  attn.window = c.int_or("sliding_window", 0, 0);
  c.expect_bool("attention_bias", false);
  return attn;
}

}  // namespace

ModelSpec mistral(const ConfigReader& c) {
  ModelSpec m = decoder(c);
  const DenseFfn ffn = gated_ffn(c, c.require_int("intermediate_size", 1));
  m.layers.assign(static_cast<size_t>(num_layers(c)), pre_norm(rms(c), windowed(c), ffn));
  return m;
}

ModelSpec mixtral(const ConfigReader& c) {
  ModelSpec m = decoder(c);
  const MoeFfn ffn = {
      .num_experts = c.require_int("num_local_experts", 1),
      .top_k = c.int_or("num_experts_per_tok", 2, 1),
      .expert = gated_ffn(c, c.require_int("intermediate_size", 1)),
      .router = {.score = Router::kSoftmax, .renormalise = true},
  };
  m.layers.assign(static_cast<size_t>(num_layers(c)), pre_norm(rms(c), windowed(c), ffn));
  m.renames = {
      {"mlp.gate", "block_sparse_moe.gate"},
      {"mlp.experts.*.gate_proj", "block_sparse_moe.experts.*.w1"},
      {"mlp.experts.*.up_proj", "block_sparse_moe.experts.*.w3"},
      {"mlp.experts.*.down_proj", "block_sparse_moe.experts.*.w2"},
      {"mlp.switch_mlp.gate_proj", "block_sparse_moe.switch_mlp.gate_proj"},
      {"mlp.switch_mlp.up_proj", "block_sparse_moe.switch_mlp.up_proj"},
      {"mlp.switch_mlp.down_proj", "block_sparse_moe.switch_mlp.down_proj"},
  };
  return m;
}

}  // namespace weir::model::family
