// Hunyuan: Q and K heads are normalised after rope. With experts: every layer routes by softmax and
// has a shared expert beside.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f};

// A number, or one for each layer; `fallback` where the key is missing.
std::vector<int> by_layer(const ConfigReader& c, const char* key, int fallback) {
  const auto layers = static_cast<size_t>(num_layers(c));
  std::vector<int> out = c.ints(key, 0);
  if (out.empty()) out = {fallback};
  if (out.size() == 1) out.resize(layers, out[0]);
  if (out.size() != layers)
    c.reject(std::string(key) + ": expected a number or one for each of " + std::to_string(layers) +
             " layers, found " + std::to_string(out.size()));
  out.resize(layers);
  return out;
}

Attention attention(const ConfigReader& c) {
  for (const char* key : {"attention_head_dim", "cla_share_factor", "org_vocab_size", "dense_list",
                          "class_num", "pool_type"})
    c.ignore(key);  // head_dim and vocab_size once more, of use_cla, and of a classifier's head.
  for (const char* key : {"eod_token_id", "im_end_id", "im_newline_id", "im_start_id",
                          "mask_init_id", "pad_id", "text_end_id", "text_start_id"})
    c.ignore(key);  // Tokens.
  for (const char* key : {"use_cla", "mlp_bias", "add_classification_head"})
    c.expect_bool(key, false);
  expect_string(c, "norm_type", "rms");
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  if (c.bool_or("use_qk_norm", true)) attn.qk_norm = Attention::kPerHead;
  attn.qk_norm_after_rope = true;
  attn.qk_norm_eps = rms(c, kDefaults).eps;
  return attn;
}

void rename_qk_norms(ModelSpec& m) {
  m.renames.emplace_back("self_attn.q_norm", "self_attn.query_layernorm");
  m.renames.emplace_back("self_attn.k_norm", "self_attn.key_layernorm");
}

}  // namespace

ModelSpec hunyuan_v1_dense(const ConfigReader& c) {
  c.expect_bool("use_rotary_pos_emb", true);
  ModelSpec m = pre_norm_model(c, kDefaults, attention(c), gated_ffn(c, "intermediate_size"));
  rename_qk_norms(m);
  return m;
}

ModelSpec hunyuan_v1_moe(const ConfigReader& c) {
  c.expect_bool("norm_topk_prob", true);
  ModelSpec m = decoder(c, kDefaults);
  const Attention attn = attention(c);
  Moe moe = {.num_experts = c.int_or("num_experts", 1, 1),
             .expert = gated_ffn(c, "intermediate_size"),
             .router = {.score = Router::kSoftmax, .renormalise = true}};
  const Dense one = moe.expert;
  const bool shares = c.bool_or("use_mixed_mlp_moe", true);
  const std::vector<int> top_k = by_layer(c, "moe_topk", 1);
  const std::vector<int> width = by_layer(c, "moe_intermediate_size", one.width);
  const std::vector<int> shared = by_layer(c, "num_shared_expert", 1);
  for (size_t i = 0; i < top_k.size(); ++i) {
    moe.top_k = top_k[i];
    moe.expert.width = width[i];
    moe.shared = shared_experts(one, shares ? shared[i] : 0);
    add_layer(m, pre_norm(m.final_norm, attn, moe));
  }
  m.renames = {{"mlp.gate", "mlp.gate.wg"}};
  rename_qk_norms(m);
  rename_shared(m, "mlp.shared_mlp");
  return m;
}

}  // namespace weir::model::family
