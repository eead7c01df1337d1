// OpenELM: Llama under names of its own with normalised heads; each layer has its own numbers of
// heads and its own width.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.hidden_key = "model_dim", .context_key = "max_context_length"};

// One for each layer, of a list of them or of one for all.
template <class T>
std::vector<T> of_layers(const ConfigReader& c, const char* key, std::vector<T> found) {
  const auto layers = static_cast<size_t>(num_layers(c, "num_transformer_layers"));
  if (found.size() == 1) found.resize(layers, found[0]);
  if (found.size() != layers)
    c.reject(std::string(key) + ": expected one for each of " + std::to_string(layers) +
             " layers, found " + std::to_string(found.size()));
  found.resize(layers);
  return found;
}

// A multiple of `divisor`, at least nine tenths of `width`.
int near_multiple(float width, int divisor) {
  constexpr float kWidthMax = 1 << 20;
  const auto step = static_cast<float>(divisor);
  const float most = std::clamp(width, 0.0f, kWidthMax);
  float near = std::max(step, std::floor(std::floor(most + step / 2) / step) * step);
  if (near < 0.9f * most) near += step;
  return static_cast<int>(near);
}

}  // namespace

ModelSpec openelm(const ConfigReader& c) {
  expect_string(c, "normalization_layer_name", "rms_norm");
  // How many heads there are, which is also said for each layer; and how far angles are tabulated.
  for (const char* key : {"num_gqa_groups", "qkv_multipliers", "rope_max_length"}) c.ignore(key);
  ModelSpec m = decoder(c, kDefaults);
  m.tied_head = c.bool_or("share_input_output_layers", true);
  Attention attn;
  attn.head_dim = c.int_or("head_dim", 128, 1);
  attn.scale = 1 / std::sqrt(static_cast<float>(attn.head_dim));
  attn.rope = rope(c, attn.head_dim, c.float_or("rope_freq_constant", 10000), "full_attention");
  if (c.bool_or("normalize_qk_projections", true)) attn.qk_norm = Attention::kPerHead;
  Dense ffn = {.act = activation(c, "activation_fn_name", "swish"),
               .gated = c.bool_or("ffn_with_glu", true)};
  const int layers = num_layers(c, "num_transformer_layers");
  const std::vector<int> heads = of_layers(c, "num_query_heads", c.ints("num_query_heads", 1)),
                         kv_heads = of_layers(c, "num_kv_heads", c.ints("num_kv_heads", 1));
  const std::vector<float> widths = of_layers(c, "ffn_multipliers", c.floats("ffn_multipliers"));
  const int divisor = c.int_or("ffn_dim_divisor", 256, 1);
  for (size_t i = 0; i < static_cast<size_t>(layers); ++i) {
    attn.num_heads = heads[i];
    attn.num_kv_heads = kv_heads[i];
    ffn.width = near_multiple(widths[i] * static_cast<float>(m.hidden_size), divisor);
    add_layer(m, pre_norm(m.final_norm, attn, ffn));
  }
  m.layers = "transformer.layers.";
  m.fused = {{"attn.qkv_proj", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}}};
  m.fused.push_back({"ffn.proj_1", {"mlp.gate_proj", "mlp.up_proj"}});
  m.renames = {{"embed_tokens", "transformer.token_embeddings"},
               {"norm", "transformer.norm"},
               {"input_layernorm", "attn_norm"},
               {"self_attn.q_norm", "attn.q_norm"},
               {"self_attn.k_norm", "attn.k_norm"},
               {"self_attn.o_proj", "attn.out_proj"},
               {"post_attention_layernorm", "ffn_norm"},
               {"mlp.up_proj", "ffn.proj_1"},
               {"mlp.down_proj", "ffn.proj_2"}};
  return m;
}

}  // namespace weir::model::family
