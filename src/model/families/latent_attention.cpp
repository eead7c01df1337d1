// Latent attention as config.json describes it, with DeepSeek's keys.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

// Half the longest width that a layer may have: sizes of heads and ranks are checked by check_spec.
constexpr int kSizeMax = 1 << 19;

// All of rope_dim turns. partial_rotary_factor is 1, or says what share of a head that is.
Rope latent_rope(const ConfigReader& c, const LatentAttention& a, float theta) {
  Rope r = rope(c, a.q_dim(), theta, "full_attention");
  if (r.dim != a.q_dim() && std::abs(r.dim - a.rope_dim) > 1)
    c.reject(
        "partial_rotary_factor: expected 1, or the share of qk_rope_head_dim in a head, found " +
        std::to_string(r.dim) + " of " + std::to_string(a.q_dim()) + " dimensions");
  r.dim = a.rope_dim;
  r.layout = c.bool_or("rope_interleave", true) ? Rope::kInterleaved : Rope::kHalf;
  return r;
}

}  // namespace

LatentAttention latent_attention(const ConfigReader& c, const LatentSizes& defaults) {
  LatentAttention a;
  a.num_heads = c.require_int("num_attention_heads", 1, kSizeMax);
  c.ignore("num_key_value_heads");  // All heads have keys of their own, made from one latent.
  c.ignore("head_dim");             // qk_rope_head_dim once more, where transformers 5 writes it.
  const int q_rank = c.is_null("q_lora_rank") ? 0 : defaults.q_rank;
  a.q_rank = c.int_or("q_lora_rank", q_rank, 0, kSizeMax);
  a.kv_rank = c.int_or("kv_lora_rank", defaults.kv_rank, 1, kSizeMax);
  a.nope_dim = c.int_or("qk_nope_head_dim", defaults.nope_dim, 1, kSizeMax);
  a.rope_dim = c.int_or("qk_rope_head_dim", defaults.rope_dim, 0, kSizeMax);
  a.v_head_dim = c.int_or("v_head_dim", defaults.v_head_dim, 1, kSizeMax);
  if (c.has("qk_head_dim")) c.expect_int("qk_head_dim", a.q_dim());
  a.bias = c.bool_or("attention_bias", false);
  a.rope = latent_rope(c, a, defaults.rope_theta);
  grow_queries(c, a.position_beta, a.position_step);
  a.scale = yarn_softmax_factor(c, a.rope) / std::sqrt(static_cast<float>(a.q_dim()));
  return a;
}

LatentAttention sparse_latent_attention(const ConfigReader& c, const LatentSizes& defaults,
                                        const IndexerSizes& indexer) {
  LatentAttention a = latent_attention(c, defaults);
  // Layers that take what the one before has chosen (GLM-5.2) are not known here.
  for (const std::string& type : c.strings("indexer_types"))
    if (type != "full")
      c.reject("indexer_types: expected full of every layer, found \"" + type.substr(0, 80) + "\"");
  if (c.has("index_topk_freq")) c.expect_int("index_topk_freq", 1);
  const bool interleaved = c.bool_or("indexer_rope_interleave", false);
  a.indexer = {.heads = c.int_or("index_n_heads", indexer.heads, 1, kSizeMax),
               .dim = c.int_or("index_head_dim", indexer.dim, 1, kSizeMax),
               .top_k = c.int_or("index_topk", indexer.top_k, 1, kSizeMax),
               .layout = interleaved ? Rope::kInterleaved : Rope::kHalf};
  return a;
}

}  // namespace weir::model::family
