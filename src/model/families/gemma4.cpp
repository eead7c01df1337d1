// Gemma 4 (text): norms before and after each sublayer; layers that slide, and some that attend to
// everything with heads of another size and a proportional rope, whose values may be their keys;
// the last ones may read the keys of earlier ones. Experts stand beside the feed-forward network,
// and tokens may bring each layer numbers of their own.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.num_key_value_heads = 4, .head_dim = 256, .tied_head = true};

Rope default_rope(bool full, int head_dim) {
  if (!full) return {.theta = 10000, .dim = head_dim};
  return {.theta = 1e6f, .dim = head_dim, .still_pairs = head_dim / 2 - head_dim / 8};
}

Attention attention(const ConfigReader& c, bool full, float norm_eps) {
  Attention a = gqa(c, kDefaults);
  const int global_heads = c.int_or("num_global_key_value_heads", a.num_kv_heads, 1);
  const bool values_are_keys = c.bool_or("attention_k_eq_v", false);
  const int global_dim = c.int_or("global_head_dim", 512, 1, 1024);
  const int window = sliding_window(c, 512);
  if (full) {
    a.head_dim = global_dim;
    a.values_are_keys = values_are_keys;
    if (values_are_keys) a.num_kv_heads = global_heads;
  } else {
    a.window = window;
  }
  a.rope = c.has("rope_parameters") ? rope(c, a.head_dim, full ? 1e6f : 1e4f,
                                           full ? "full_attention" : "sliding_attention")
                                    : default_rope(full, a.head_dim);
  a.scale = 1;
  a.qk_norm = Attention::kPerHead;
  a.qk_norm_eps = norm_eps;
  a.v_norm = true;
  return a;
}

Moe experts(const ConfigReader& c, const ModelSpec& m, Act act) {
  c.expect_absent("expert_intermediate_size");
  return {.num_experts = c.require_int("num_experts", 1),
          .top_k = c.require_int("top_k_experts", 1),
          .expert = {.width = ffn_width(c, "moe_intermediate_size"), .act = act},
          .router = {.own_norm = true,
                     .norm_eps = m.final_norm.eps,
                     .logit_scale = 1 / std::sqrt(static_cast<float>(m.hidden_size)),
                     .expert_scale = true,
                     .renormalise = true}};
}

// The dense network and the experts side by side.
void add_experts(std::vector<Sublayer>& layer, const Norm& norm, const Moe& moe) {
  Sublayer& dense = layer.back();
  Sublayer sparse = {.op = moe,
                     .pre = named(norm, "pre_feedforward_layernorm_2"),
                     .post = named(norm, "post_feedforward_layernorm_2")};
  sparse.joint = dense.post;
  dense.post = named(norm, "post_feedforward_layernorm_1");
  dense.held = true;
  layer.push_back(std::move(sparse));
}

void name_weights(ModelSpec& m) {
  m.renames = {{"mlp.gate", "router.proj"},
               {"mlp.gate.scale", "router.scale"},
               {"mlp.gate.expert_scale", "router.per_expert_scale"},
               {"token_input.gate_proj", "per_layer_input_gate"},
               {"token_input.down_proj", "per_layer_projection"}};
  for (const std::string part : {"gate_proj", "up_proj", "down_proj"})
    m.renames.emplace_back("mlp.switch_mlp." + part, "experts.switch_glu." + part);
  m.expert_tensors = {.gate_up = "experts.gate_up_proj", .down = "experts.down_proj"};
}

}  // namespace

ModelSpec gemma4_text(const ConfigReader& c) {
  c.expect_bool("attention_bias", false);
  const std::string both_ways = c.string_or("use_bidirectional_attention", "");
  if (!both_ways.empty() && both_ways != "vision")
    c.reject("use_bidirectional_attention: expected null or \"vision\"");
  ModelSpec m = decoder(c, kDefaults);
  const Norm norm = m.final_norm;
  m.embed_scale = std::sqrt(static_cast<float>(m.hidden_size));
  m.logit_softcap = softcap(c, "final_logit_softcapping", 0);
  if (!both_ways.empty()) m.both_ways = BothWays::kRuns;
  const Attention full = attention(c, true, norm.eps), sliding = attention(c, false, norm.eps);
  Dense dense = {.width = ffn_width(c, "intermediate_size"),
                 .act = activation(c, "hidden_activation", "gelu_pytorch_tanh")};
  std::optional<Moe> moe;
  if (c.bool_or("enable_moe_block", false)) moe = experts(c, m, dense.act);
  const Dense by_token = {.width = c.int_or("hidden_size_per_layer_input", 256, 0),
                          .act = dense.act,
                          .up_by_token = true};
  const int token_vocab = c.int_or("vocab_size_per_layer_input", 262144, 1);
  if (by_token.width > 0)
    m.token_inputs = {.width = by_token.width,
                      .vocab_size = token_vocab,
                      .norm = named(norm, "model.per_layer_projection_norm")};
  const int layers = num_layers(c);
  const int first_shared = layers - c.int_or("num_kv_shared_layers", 0, 0, layers);
  const bool widens = c.bool_or("use_double_wide_mlp", false);
  const int narrow = dense.width;
  std::vector<bool> slides = sliding_layers(c, [](int i) { return (i + 1) % 6 != 0; });
  if (!slides.empty()) slides.back() = false;
  int owner[2] = {-1, -1};  // Of the keys that later layers read: by whether they slide.
  for (int i = 0; i < layers; ++i) {
    const bool slide = slides[static_cast<size_t>(i)],
               shares = first_shared > 0 && i >= first_shared;
    dense.width = shares && widens ? 2 * narrow : narrow;
    std::vector<Sublayer> layer = sandwich_norm(norm, slide ? sliding : full, dense);
    if (shares)
      layer[0].memory_of = owner[slide];
    else
      owner[slide] = static_cast<int>(m.sublayers.size());
    if (moe) add_experts(layer, norm, *moe);
    if (m.token_inputs)
      layer.push_back({.op = by_token, .post = named(norm, "post_per_layer_input_norm")});
    layer.back().stream_scale = "layer_scalar";
    add_layer(m, std::move(layer));
  }
  name_weights(m);
  return m;
}

ModelSpec gemma4(const ConfigReader& c) {
  for (const char* key : {"boa_token_id", "boi_token_id", "eoa_token_id", "eoa_token_index",
                          "eoi_token_id", "vision_soft_tokens_per_image"})
    c.ignore(key);
  std::vector<std::string> towers;
  for (const char* tower : {"audio_tower.", "embed_audio.", "embed_vision.", "vision_tower."})
    for (const char* root : {"", "model."}) towers.push_back(std::string(root) + tower);
  return text_within(c, gemma4_text, {"model.language_model.", "language_model.model."},
                     std::move(towers));
}

}  // namespace weir::model::family
