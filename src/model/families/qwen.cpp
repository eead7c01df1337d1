// Qwen2 (biases on Q, K and V) and Qwen3 (RMSNorm on every Q and K head), dense and with experts.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

// The window counts only if use_sliding_window says so, and then from layer max_window_layers on.
LayerSpec qwen_layer(const ConfigReader& c, int layer, Attention attn, const Ffn& ffn) {
  const bool use_window = c.bool_or("use_sliding_window", false);
  const int first = c.int_or("max_window_layers", 28);
  const int window = c.int_or("sliding_window", 4096, 0);
  const bool sliding = slides(c.strings("layer_types"), layer, layer >= first);
  if (use_window && sliding) attn.window = window;
  return pre_norm(rms(c), attn, ffn);
}

Attention qwen2_attention(const ConfigReader& c) {
  Attention attn = gqa(c);
  attn.qkv_bias = true;
  return attn;
}

Attention qwen3_attention(const ConfigReader& c) {
  Attention attn = gqa(c);
  attn.qk_norm = Attention::kPerHead;
  attn.qk_norm_eps = rms(c).eps;
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  return attn;
}

ModelSpec dense(const ConfigReader& c, const Attention& attn) {
  ModelSpec m = decoder(c);
  const DenseFfn ffn = gated_ffn(c, c.require_int("intermediate_size", 1));
  for (int i = 0; i < num_layers(c); ++i) m.layers.push_back(qwen_layer(c, i, attn, ffn));
  return m;
}

// Layer i has experts iff it is not in mlp_only_layers and i + 1 is a multiple of
// decoder_sparse_step.
ModelSpec sparse(const ConfigReader& c, const Attention& attn, const MoeFfn& moe) {
  ModelSpec m = decoder(c);
  const DenseFfn dense_ffn = gated_ffn(c, c.require_int("intermediate_size", 1));
  const int step = c.int_or("decoder_sparse_step", 1, 1);
  const std::vector<int> dense_layers = c.ints("mlp_only_layers");
  for (int i = 0; i < num_layers(c); ++i) {
    const bool is_dense = (i + 1) % step != 0 || std::ranges::count(dense_layers, i) > 0;
    m.layers.push_back(qwen_layer(c, i, attn, is_dense ? Ffn{dense_ffn} : Ffn{moe}));
  }
  return m;
}

MoeFfn routed(const ConfigReader& c, int num_experts, int top_k) {
  return MoeFfn{
      .num_experts = num_experts,
      .top_k = top_k,
      .expert = gated_ffn(c, c.require_int("moe_intermediate_size", 1)),
      .router = {.score = Router::kSoftmax, .renormalise = c.bool_or("norm_topk_prob", false)},
  };
}

}  // namespace

ModelSpec qwen2(const ConfigReader& c) { return dense(c, qwen2_attention(c)); }

ModelSpec qwen3(const ConfigReader& c) { return dense(c, qwen3_attention(c)); }

ModelSpec qwen2_moe(const ConfigReader& c) {
  MoeFfn moe = routed(c, c.int_or("num_experts", 60, 1), c.int_or("num_experts_per_tok", 4, 1));
  moe.shared = gated_ffn(c, c.require_int("shared_expert_intermediate_size", 1));
  moe.shared_gate = true;
  return sparse(c, qwen2_attention(c), moe);
}

ModelSpec qwen3_moe(const ConfigReader& c) {
  const MoeFfn moe =
      routed(c, c.require_int("num_experts", 1), c.int_or("num_experts_per_tok", 8, 1));
  return sparse(c, qwen3_attention(c), moe);
}

}  // namespace weir::model::family
