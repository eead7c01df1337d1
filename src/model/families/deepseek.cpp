// DeepSeek V2: multi-head latent attention; experts chosen by softmax, within the best groups where
// config.json asks for it, and shared experts beside them. The first layers are dense.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {};

// Half the longest width that a layer may have: sizes of heads and ranks are checked by check_spec.
constexpr int kSizeMax = 1 << 19;

LatentAttention latent_attention(const ConfigReader& c) {
  LatentAttention a;
  a.num_heads = c.require_int("num_attention_heads", 1, kSizeMax);
  c.ignore("num_key_value_heads");  // All heads have keys of their own, made from one latent.
  c.ignore("head_dim");             // qk_rope_head_dim once more, where transformers 5 writes it.
  a.q_rank = c.int_or("q_lora_rank", c.is_null("q_lora_rank") ? 0 : 1536, 0, kSizeMax);
  a.kv_rank = c.int_or("kv_lora_rank", 512, 1, kSizeMax);
  a.nope_dim = c.int_or("qk_nope_head_dim", 128, 1, kSizeMax);
  a.rope_dim = c.int_or("qk_rope_head_dim", 64, 0, kSizeMax);
  a.v_head_dim = c.int_or("v_head_dim", 128, 1, kSizeMax);
  a.rope = rope(c, a.rope_dim, kDefaults.rope_theta, "full_attention");
  a.rope.layout = Rope::kInterleaved;
  a.scale = yarn_softmax_factor(c, a.rope) / std::sqrt(static_cast<float>(a.q_dim()));
  return a;
}

Router router(const ConfigReader& c) {
  expect_string(c, "scoring_func", "softmax");
  const std::string method = c.string_or("topk_method", "greedy");
  if (method != "greedy" && method != "group_limited_greedy")
    c.reject("topk_method: expected greedy or group_limited_greedy, found \"" +
             method.substr(0, 80) + "\"");
  Router r = {.score = Router::kSoftmax, .group_score = Router::kBest};
  const int groups = c.int_or("n_group", 1, 1), kept = c.int_or("topk_group", 1, 1);
  if (method == "group_limited_greedy") r.groups = groups, r.groups_kept = kept;
  r.renormalise = c.bool_or("norm_topk_prob", false);
  r.epsilon = r.renormalise ? 1e-20f : 0;
  // DeepSeek's own code multiplies weights by it that it does not renormalise.
  const float factor = c.float_or("routed_scaling_factor", 1);
  if (!r.renormalise) r.scale = factor;
  return r;
}

Moe experts(const ConfigReader& c) {
  Moe moe = {.num_experts = c.int_or("n_routed_experts", 64, 1),
             .top_k = c.require_int("num_experts_per_tok", 1),
             .expert = gated_ffn(c, "moe_intermediate_size"),
             .router = router(c)};
  constexpr int kSharedMax = 64;
  const int shared =
      c.int_or("n_shared_experts", c.is_null("n_shared_experts") ? 0 : 2, 0, kSharedMax);
  if (shared > 0) {
    moe.shared = moe.expert;
    moe.shared->width *= shared;  // Computed as one.
  }
  return moe;
}

}  // namespace

ModelSpec deepseek_v2(const ConfigReader& c) {
  for (const char* key : {"ep_size", "aux_loss_alpha", "seq_aux"}) c.ignore(key);  // Training's.
  ModelSpec m = decoder(c, kDefaults);
  const LatentAttention attention = latent_attention(c);
  const Dense dense = gated_ffn(c, "intermediate_size");
  const Moe moe = experts(c);
  const int first = c.int_or("first_k_dense_replace", 0, 0);
  const int every = c.int_or("moe_layer_freq", 1, 1);
  for (int i = 0; i < num_layers(c); ++i) {
    const bool sparse = i >= first && i % every == 0;
    add_layer(m, pre_norm(m.final_norm, attention, sparse ? Operation{moe} : Operation{dense}));
  }
  rename_shared(m, "mlp.shared_experts");
  return m;
}

}  // namespace weir::model::family
