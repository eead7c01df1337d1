// Llama 4: three layers that attend within chunks and have an interleaved rope, then one that
// attends to everything without; queries of that one grow with their position. One expert of many,
// whose input the router weighs, beside a shared one.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {
    .rms_norm_eps = 1e-5f, .rope_theta = 5e5f, .num_key_value_heads = 8, .head_dim = 128};

// Layer by layer: has a rope.
std::vector<bool> turning_layers(const ConfigReader& c) {
  const std::vector<int> listed = c.ints("no_rope_layers", 0);
  const int interval = c.int_or("no_rope_layer_interval", 4, 1);
  std::vector<bool> turns(static_cast<size_t>(num_layers(c)));
  if (!listed.empty() && listed.size() != turns.size())
    c.reject("no_rope_layers: expected one number for each of " + std::to_string(turns.size()) +
             " layers, found " + std::to_string(listed.size()));
  for (size_t i = 0; i < turns.size(); ++i)
    turns[i] = i < listed.size() ? listed[i] != 0 : (static_cast<int>(i) + 1) % interval != 0;
  return turns;
}

// Layer by layer: has experts.
std::vector<bool> sparse_layers(const ConfigReader& c) {
  const int step = c.int_or("interleave_moe_layer_step", 1, 1);
  std::vector<bool> sparse(static_cast<size_t>(num_layers(c)));
  for (size_t i = 0; i < sparse.size(); ++i)
    sparse[i] = !c.has("moe_layers") && (static_cast<int>(i) + 1) % step == 0;
  for (const int layer : c.ints("moe_layers", 0))
    if (static_cast<size_t>(layer) < sparse.size()) sparse[static_cast<size_t>(layer)] = true;
  return sparse;
}

// With a rope, but not in chunks yet.
Attention turned_attention(const ConfigReader& c, float norm_eps) {
  Attention a = gqa(c, kDefaults);
  a.rope.layout = Rope::kInterleaved;
  a.qkv_bias = a.out_bias = c.bool_or("attention_bias", false);
  if (c.bool_or("use_qk_norm", true)) a.qk_norm = Attention::kPerHead;
  a.qk_norm_weight = false;
  a.qk_norm_after_rope = true;
  a.qk_norm_eps = norm_eps;
  return a;
}

// Files of the first release say 4 where others say true.
bool tunes(const ConfigReader& c) {
  constexpr const char* kKey = "attn_temperature_tuning";
  const auto value = c.value(kKey);
  return value && value->is_number() ? c.int_or(kKey, 1) != 0 : c.bool_or(kKey, true);
}

// Without.
Attention plain_attention(const ConfigReader& c, Attention a) {
  a.rope = {};
  a.qk_norm = Attention::kNoQkNorm;
  a.position_step = c.int_or("floor_scale", 8192, 1);
  a.position_shift = 1;
  const float beta = c.float_or("attn_scale", 0.1f);
  if (tunes(c)) a.position_beta = beta;
  return a;
}

Moe experts(const ConfigReader& c) {
  Moe moe = {.num_experts = c.int_or("num_local_experts", 16, 1),
             .top_k = c.int_or("num_experts_per_tok", 1, 1),
             .expert = gated_ffn(c, "intermediate_size"),
             .router = {.score = Router::kSigmoidOfTopK},
             .weighs_input = true};
  moe.shared = moe.expert;
  return moe;
}

void name_weights(ModelSpec& m) {
  m.renames = {{"mlp.gate", "feed_forward.router"}};
  for (const std::string part : {"gate_proj", "up_proj", "down_proj"})
    for (const auto& [canonical, stored] :
         {std::pair<std::string, std::string>{"mlp.", "feed_forward."},
          {"mlp.shared_expert.", "feed_forward.shared_expert."},
          {"mlp.switch_mlp.", "feed_forward.experts."}})
      m.renames.emplace_back(canonical + part, stored + part);
  m.expert_tensors = {.gate_up = "feed_forward.experts.gate_up_proj",
                      .down = "feed_forward.experts.down_proj",
                      .transposed = true};
}

}  // namespace

ModelSpec llama4_text(const ConfigReader& c) {
  c.ignore("for_llm_compressor");  // How experts were stored for a tool.
  ModelSpec m = decoder(c, kDefaults);
  const Attention turned = turned_attention(c, m.final_norm.eps),
                  plain = plain_attention(c, turned);
  const Moe moe = experts(c);
  const Dense dense = gated_ffn(c, "intermediate_size_mlp");
  const int chunk =
      c.int_or("attention_chunk_size", c.is_null("attention_chunk_size") ? 0 : 8192, 0);
  const std::vector<bool> turns = turning_layers(c), sparse = sparse_layers(c);
  const std::vector<bool> chunked = layers_of_type(
      c, "chunked_attention", [&](int i) { return bool{turns[static_cast<size_t>(i)]}; });
  for (size_t i = 0; i < turns.size(); ++i) {
    Attention attn = turns[i] ? turned : plain;
    attn.chunks = chunked[i] && chunk > 0;
    attn.window = attn.chunks ? chunk : 0;
    add_layer(m, pre_norm(m.final_norm, attn, sparse[i] ? Operation{moe} : Operation{dense}));
  }
  name_weights(m);
  return m;
}

ModelSpec llama4(const ConfigReader& c) {
  for (const char* key : {"boi_token_index", "eoi_token_index", "image_token_index"}) c.ignore(key);
  return text_within(c, llama4_text, {"language_model.model."},
                     {"vision_model.", "multi_modal_projector."});
}

}  // namespace weir::model::family
