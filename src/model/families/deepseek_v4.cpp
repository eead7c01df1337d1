// DeepSeek V4: attention to a window and to compressed blocks, several residual streams with
// hyper-connections, experts in every layer, of which the first layers take those that a table says
// for the token (docs/deepseek-v4.md).
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {};
// Half the longest width that a layer may have: check_spec checks heads and ranks.
constexpr int kSizeMax = 1 << 19;
// What compress_ratios calls the two kinds of blocks. Those of ratio 4 overlap, and an indexer
// chooses among them; how many tokens the others have may be said by a key of their own.
constexpr int kChosen = 4, kHeavy = 128;

// Of all layers, in order; there may be more for those that guess further tokens, which are not
// run.
std::vector<int> block_ratios(const ConfigReader& c, int guessing_layers) {
  const auto layers = static_cast<size_t>(num_layers(c));
  std::vector<int> ratios = c.ints("compress_ratios", 0);
  if (ratios.size() != layers && ratios.size() != layers + static_cast<size_t>(guessing_layers))
    c.reject("compress_ratios: expected one for each of " + std::to_string(layers) +
             " layers, found " + std::to_string(ratios.size()));
  ratios.resize(layers);
  for (size_t i = 0; i < layers; ++i)
    if (ratios[i] != 0 && ratios[i] != kChosen && ratios[i] != kHeavy)
      c.reject("compress_ratios[" + std::to_string(i) + "]: expected 0, 4 or 128, found " +
               std::to_string(ratios[i]));
  return ratios;
}

// The rope of layers with blocks, scaled where config.json says so, and that of the others, which
// is never scaled. DeepSeek's code multiplies neither angles nor scores for the sake of yarn.
struct Ropes {
  Rope of_blocks, plain;
};
Ropes ropes(const ConfigReader& c, int head_dim) {
  const int dim = c.int_or("qk_rope_head_dim", 64, 0, kSizeMax);
  Ropes r = {.of_blocks = rope(c, head_dim, kDefaults.rope_theta, "full_attention"), .plain = {}};
  if (r.of_blocks.dim != head_dim && std::abs(r.of_blocks.dim - dim) > 1)
    c.reject(
        "partial_rotary_factor: expected 1, or the share of qk_rope_head_dim in a head, found " +
        std::to_string(r.of_blocks.dim) + " of " + std::to_string(head_dim) + " dimensions");
  r.of_blocks.dim = dim;
  r.of_blocks.layout = Rope::kInterleaved;
  r.of_blocks.attention_factor = 1;
  r.plain = {.layout = Rope::kInterleaved, .theta = r.of_blocks.theta, .dim = dim};
  r.of_blocks.theta = c.float_or("compress_rope_theta", 160000);
  return r;
}

// Of a layer without blocks.
CompressedAttention windowed(const ConfigReader& c, float norm_eps) {
  c.expect_int("num_key_value_heads", 1);
  c.expect_bool("attention_bias", false);
  CompressedAttention a = {.num_heads = c.require_int("num_attention_heads", 1, kSizeMax),
                           .head_dim = c.int_or("head_dim", 512, 1, kSizeMax),
                           .q_rank = c.int_or("q_lora_rank", 1024, 1, kSizeMax),
                           .window = sliding_window(c, 128),
                           .out_groups = c.int_or("o_groups", 8, 1, kSizeMax),
                           .out_rank = c.int_or("o_lora_rank", 1024, 1, kSizeMax),
                           .norm_eps = norm_eps};
  a.scale = 1 / std::sqrt(static_cast<float>(a.head_dim));
  return a;
}

// What of all layers' experts is the same.
Moe experts(const ConfigReader& c) {
  expect_string(c, "scoring_func", "sqrtsoftplus");
  expect_string(c, "topk_method", "noaux_tc");
  for (const char* key : {"n_group", "topk_group"})
    if (c.has(key)) c.expect_int(key, 1);
  c.ignore("expert_dtype");  // How they are stored: card/weight_format.h.
  constexpr int kSharedMax = 64;
  Moe moe = {.num_experts = c.int_or("n_routed_experts", 256, 1),
             .top_k = c.int_or("num_experts_per_tok", 6, 1),
             .expert = gated_ffn(c, "moe_intermediate_size"),
             .router = {.score = Router::kSqrtSoftplus,
                        .renormalise = c.bool_or("norm_topk_prob", true),
                        .scale = c.float_or("routed_scaling_factor", 1.5f)}};
  moe.expert.limit = c.float_or("swiglu_limit", 10);
  moe.router.epsilon = moe.router.renormalise ? 1e-20f : 0;
  moe.shared = shared_experts(moe.expert, c.int_or("n_shared_experts", 1, 0, kSharedMax));
  return moe;
}

// Names in files that transformers has written, and in those that DeepSeek has.
void rename_all(ModelSpec& m) {
  m.other_layers = {"layers."};
  const std::string attention = "self_attn.", theirs = "attn.";
  const std::vector<std::pair<std::string, std::string>> kParts = {
      {"q_a_proj", "wq_a"},
      {"q_a_norm", "q_norm"},
      {"q_b_proj", "wq_b"},
      {"kv_proj", "wkv"},
      {"kv_norm", "kv_norm"},
      {"sinks", "attn_sink"},
      {"o_a_proj", "wo_a"},
      {"o_b_proj", "wo_b"},
      {"compressor.kv_proj", "compressor.wkv"},
      {"compressor.gate_proj", "compressor.wgate"},
      {"compressor.position_bias", "compressor.ape"},
      {"compressor.kv_norm", "compressor.norm"},
      {"compressor.indexer.q_b_proj", "indexer.wq_b"},
      {"compressor.indexer.scorer.weights_proj", "indexer.weights_proj"},
      {"compressor.indexer.kv_proj", "indexer.compressor.wkv"},
      {"compressor.indexer.gate_proj", "indexer.compressor.wgate"},
      {"compressor.indexer.position_bias", "indexer.compressor.ape"},
      {"compressor.indexer.kv_norm", "indexer.compressor.norm"}};
  const auto add = [&](const std::string& canonical, const std::string& first,
                       const std::string& second) {
    m.renames.emplace_back(canonical, first);
    m.renames.emplace_back(canonical, second);
  };
  for (const auto& [part, stored] : kParts)
    add(attention + part, attention + part, theirs + stored);
  for (const auto& [part, stored] :
       {std::pair{"gate_proj", "w1"}, {"up_proj", "w3"}, {"down_proj", "w2"}}) {
    const std::string canonical = std::string("mlp.experts.*.") + part;
    add(canonical, std::string("mlp.experts.*.") + stored, std::string("ffn.experts.*.") + stored);
    m.renames.emplace_back(canonical, canonical);
    add(std::string("mlp.shared_expert.") + part, std::string("mlp.shared_experts.") + part,
        std::string("ffn.shared_experts.") + stored);
  }
  add("mlp.gate", "mlp.gate", "ffn.gate");
  add("mlp.gate.e_score_correction_bias", "mlp.gate.e_score_correction_bias", "ffn.gate.bias");
  add("mlp.gate.tid2eid", "mlp.gate.tid2eid", "ffn.gate.tid2eid");
  add("input_layernorm", "input_layernorm", "attn_norm");
  add("post_attention_layernorm", "post_attention_layernorm", "ffn_norm");
  for (const std::string part : {"fn", "base", "scale"}) {
    for (const std::string sublayer : {"attn", "ffn"})
      add(sublayer + "_hc." + part, sublayer + "_hc." + part, "hc_" + sublayer + "_" + part);
    add("model.hc_head.hc_" + part, "model.hc_head.hc_" + part, "hc_head_" + part);
  }
  add("embed_tokens", "model.embed_tokens", "embed");
  add("norm", "model.norm", "norm");
  add("lm_head", "head", "lm_head");
}

}  // namespace

ModelSpec deepseek_v4(const ConfigReader& c) {
  ModelSpec m = decoder(c, kDefaults);
  m.guessing_layers = c.int_or("num_nextn_predict_layers", 1, 0, 64);
  m.hyper = {.streams = c.int_or("hc_mult", 4, 1),
             .sinkhorn_rounds = c.int_or("hc_sinkhorn_iters", 20, 1),
             .eps = c.float_or("hc_eps", 1e-6f),
             .norm_eps = m.final_norm.eps};
  const CompressedAttention window = windowed(c, m.final_norm.eps);
  const Ropes turned = ropes(c, window.head_dim);
  const int heavy = c.int_or("compress_rate_hca", kHeavy, 1, kSizeMax);
  const int index_heads = c.int_or("index_n_heads", 64, 1, kSizeMax);
  const int index_dim = c.int_or("index_head_dim", 128, 1, kSizeMax);
  const int top_k = c.int_or("index_topk", 512, 1, kSizeMax);
  const Moe moe = experts(c);
  const int by_token = c.int_or("num_hash_layers", 3, 0);
  for (const int ratio : block_ratios(c, m.guessing_layers)) {
    CompressedAttention a = window;
    a.rope = ratio == 0 ? turned.plain : turned.of_blocks;
    a.ratio = ratio == kHeavy ? heavy : ratio;
    if (ratio == kChosen) {
      a.overlaps = true;
      a.index_heads = index_heads, a.index_dim = index_dim, a.top_k = top_k;
    }
    Moe own = moe;
    if (layer_count(m) < by_token)
      own.router.token_table = m.vocab_size;
    else
      own.router.selection_bias = true;
    std::vector<Sublayer> layer = pre_norm(m.final_norm, a, own);
    layer[0].hyper = "attn_hc";
    layer[1].hyper = "ffn_hc";
    add_layer(m, std::move(layer));
  }
  rename_all(m);
  return m;
}

}  // namespace weir::model::family
