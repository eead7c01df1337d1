// Qwen2 (biases on Q, K and V; MiMo is the same) and Qwen3 (RMSNorm on every Q and K head), dense
// and with experts, and the text of both beside images.
#include <set>

#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kQwen2 = {.num_key_value_heads = 32};
constexpr Defaults kQwen2Moe = {.num_key_value_heads = 16};
constexpr Defaults kQwen2Vl = {.rms_norm_eps = 1e-5f, .rope_theta = 1e6f, .num_key_value_heads = 8};
constexpr Defaults kQwen3 = {.num_key_value_heads = 32, .head_dim = 128};
constexpr Defaults kQwen3Moe = {.num_key_value_heads = 4};
constexpr Defaults kQwen3Vl = {.rope_theta = 5e6f, .num_key_value_heads = 32, .head_dim = 128};
constexpr Defaults kQwen3VlMoe = {.rope_theta = 5e6f, .num_key_value_heads = 16};

// Which layers have a window, and which. It counts only if use_sliding_window says so, and then
// from layer max_window_layers on.
class Windows {
 public:
  explicit Windows(const ConfigReader& c)
      : used_(c.bool_or("use_sliding_window", false)), window_(sliding_window(c, 4096)) {
    const int first = c.int_or("max_window_layers", 28);
    slides_ = sliding_layers(c, [=](int layer) { return layer >= first; });
  }
  int operator[](int layer) const {
    return used_ && slides_[static_cast<size_t>(layer)] ? window_ : 0;
  }

 private:
  bool used_;
  int window_;
  std::vector<bool> slides_;
};

Attention qwen2_attention(const ConfigReader& c, const Defaults& defaults) {
  Attention attn = gqa(c, defaults);
  attn.qkv_bias = true;
  return attn;
}

Attention qwen3_attention(const ConfigReader& c, const Defaults& defaults) {
  Attention attn = gqa(c, defaults);
  attn.qk_norm = Attention::kPerHead;
  attn.qk_norm_eps = rms(c, defaults).eps;
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  return attn;
}

ModelSpec dense(const ConfigReader& c, const Defaults& defaults, Attention attn) {
  ModelSpec m = decoder(c, defaults);
  const Dense ffn = gated_ffn(c, "intermediate_size");
  const Windows windows(c);
  for (int i = 0; i < num_layers(c); ++i) {
    attn.window = windows[i];
    add_layer(m, pre_norm(m.final_norm, attn, ffn));
  }
  return m;
}

// Layer i has experts iff it is not in mlp_only_layers and i + 1 is a multiple of
// decoder_sparse_step.
ModelSpec sparse(const ConfigReader& c, const Defaults& defaults, const Moe& moe, Attention attn) {
  ModelSpec m = decoder(c, defaults);
  const Windows windows(c);
  const Dense dense_ffn = gated_ffn(c, "intermediate_size");
  const int step = c.int_or("decoder_sparse_step", 1, 1);
  const std::vector<int> listed = c.ints("mlp_only_layers");
  const std::set<int> dense_layers(listed.begin(), listed.end());
  for (int i = 0; i < num_layers(c); ++i) {
    const bool is_dense = (i + 1) % step != 0 || dense_layers.contains(i);
    attn.window = windows[i];
    add_layer(m, pre_norm(m.final_norm, attn, is_dense ? Operation{dense_ffn} : Operation{moe}));
  }
  return m;
}

Moe routed(const ConfigReader& c, int num_experts, int top_k) {
  return Moe{
      .num_experts = num_experts,
      .top_k = top_k,
      .expert = gated_ffn(c, "moe_intermediate_size"),
      .router = {.score = Router::kSoftmax, .renormalise = c.bool_or("norm_topk_prob", false)},
  };
}

}  // namespace

ModelSpec qwen2(const ConfigReader& c) { return dense(c, kQwen2, qwen2_attention(c, kQwen2)); }

ModelSpec mimo(const ConfigReader& c) {
  c.ignore("num_nextn_predict_layers");  // They lie under model.mtp_layers.
  Attention attn = gqa(c, kQwen2);
  attn.qkv_bias = c.bool_or("attention_bias", true);
  return dense(c, kQwen2, attn);
}

ModelSpec qwen3(const ConfigReader& c) { return dense(c, kQwen3, qwen3_attention(c, kQwen3)); }

ModelSpec qwen2_vl_text(const ConfigReader& c) {
  return dense(c, kQwen2Vl, by_three_positions(c, qwen2_attention(c, kQwen2Vl)));
}

ModelSpec qwen3_vl_text(const ConfigReader& c) {
  return dense(c, kQwen3Vl, by_three_positions(c, qwen3_attention(c, kQwen3Vl)));
}

ModelSpec qwen2_moe(const ConfigReader& c) {
  Moe moe = routed(c, c.int_or("num_experts", 60, 1), c.int_or("num_experts_per_tok", 4, 1));
  moe.shared = gated_ffn(c, "shared_expert_intermediate_size");
  moe.shared_gate = true;
  return sparse(c, kQwen2Moe, moe, qwen2_attention(c, kQwen2Moe));
}

ModelSpec qwen3_moe(const ConfigReader& c) {
  const Moe moe = routed(c, c.int_or("num_experts", 128, 1), c.int_or("num_experts_per_tok", 8, 1));
  return sparse(c, kQwen3Moe, moe, qwen3_attention(c, kQwen3Moe));
}

ModelSpec qwen3_vl_moe_text(const ConfigReader& c) {
  c.assume("moe_intermediate_size", 1408);
  Moe moe = routed(c, c.int_or("num_experts", 60, 1), c.int_or("num_experts_per_tok", 4, 1));
  moe.router.renormalise = true;  // Whatever norm_topk_prob says.
  const Attention attn = by_three_positions(c, qwen3_attention(c, kQwen3VlMoe));
  ModelSpec m = sparse(c, kQwen3VlMoe, moe, attn);
  m.expert_tensors = {
      .gate_up = "mlp.experts.gate_up_proj", .down = "mlp.experts.down_proj", .transposed = true};
  return m;
}

}  // namespace weir::model::family
