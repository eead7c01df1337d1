// EXAONE 3 and 3.5: Llama under names of its own. EXAONE 4: Q and K heads are normalised, and norms
// stand after sublayers; three sliding layers, then one that attends to everything and has no rope.
// EXAONE with experts: the same with norms before; experts by DeepSeek V3's routing after some
// dense layers.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kExaone3 = {.rms_norm_eps = 1e-5f, .tied_head = true};
constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f, .num_key_value_heads = 32};

// Layers of attention that slide, and of attention that does not.
struct Mixers {
  Attention sliding, full;
};

Mixers mixers(const ConfigReader& c, const Norm& norm) {
  Attention full = gqa(c, kDefaults);
  full.qk_norm = Attention::kPerHead;
  full.qk_norm_eps = norm.eps;
  Attention sliding = full;
  sliding.window = sliding_window(c, 4096);
  if (sliding.window > 0) full.rope = {};
  return {sliding, full};
}

std::vector<bool> layers_with_experts(const ConfigReader& c) {
  const int first = c.int_or("first_k_dense_replace", c.int_or("first_last_k_dense_replace", 1, 0));
  if (!c.has("mlp_layer_types")) c.expect_absent("is_moe_layer");  // Else the same once more.
  c.ignore("is_moe_layer");
  return sparse_layers(c, first);
}

// Which layers slide, over and over: "LLLG", or 4, which is the same.
std::string pattern(const ConfigReader& c) {
  const auto value = c.value("sliding_window_pattern");
  if (value && !value->is_string())
    return std::string(static_cast<size_t>(c.int_or("sliding_window_pattern", 4, 1, 1 << 10)) - 1,
                       'L') +
           "G";
  const std::string text = c.string_or("sliding_window_pattern", "LLLG");
  if (text.empty() || text.find_first_not_of("LG") != text.npos)
    c.reject(
        "sliding_window_pattern: expected L and G for layers that slide and that do not, "
        "found \"" +
        text.substr(0, 80) + "\"");
  return text.empty() ? "G" : text;
}

std::vector<bool> layers_that_slide(const ConfigReader& c) {
  const std::string turns = pattern(c);
  return sliding_layers(c,
                        [&](int i) { return turns[static_cast<size_t>(i) % turns.size()] == 'L'; });
}

}  // namespace

ModelSpec exaone(const ConfigReader& c) {
  c.ignore("num_hidden_layers");  // num_layers says it,
  c.ignore("rms_norm_eps");       // layer_norm_epsilon this,
  c.ignore("hidden_act");         // and activation_function this.
  ModelSpec m = decoder(c, kExaone3);
  m.final_norm.eps = c.float_or("layer_norm_epsilon", 1e-5f);
  Attention attn = gqa(c, kExaone3);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  const Dense ffn = {.width = c.int_or("intermediate_size", 4 * m.hidden_size, 1, 1 << 20),
                     .act = activation(c, "activation_function", "silu"),
                     .bias = c.bool_or("mlp_bias", false)};
  std::vector<Sublayer> sublayers = pre_norm(m.final_norm, attn, ffn);
  sublayers[0].pre->module = "ln_1";
  sublayers[1].pre->module = "ln_2";
  add_layers(m, c.has("num_layers") ? c.require_int("num_layers", 1, 2048) : num_layers(c),
             sublayers);
  m.layers = "transformer.h.";
  m.renames = {{"embed_tokens", "transformer.wte"},
               {"norm", "transformer.ln_f"},
               {"self_attn.q_proj", "attn.attention.q_proj"},
               {"self_attn.k_proj", "attn.attention.k_proj"},
               {"self_attn.v_proj", "attn.attention.v_proj"},
               {"self_attn.o_proj", "attn.attention.out_proj"},
               {"mlp.gate_proj", "mlp.c_fc_0"},
               {"mlp.up_proj", "mlp.c_fc_1"},
               {"mlp.down_proj", "mlp.c_proj"}};
  return m;
}

ModelSpec exaone4(const ConfigReader& c) {
  ModelSpec m = decoder(c, kDefaults);
  const auto [sliding, full] = mixers(c, m.final_norm);
  const Dense ffn = gated_ffn(c, "intermediate_size");
  for (const bool slides : layers_that_slide(c))
    add_layer(m, post_norm(m.final_norm, slides ? sliding : full, ffn));
  return m;
}

ModelSpec exaone_moe(const ConfigReader& c) {
  ModelSpec m = decoder(c, kDefaults);
  const auto [sliding, full] = mixers(c, m.final_norm);
  const Moe moe = biased_moe(
      c, {.count_key = "num_experts", .shared_key = "num_shared_experts", .scale = 2.5f});
  const Dense dense = gated_ffn(c, "intermediate_size");
  const std::vector<bool> sparse = layers_with_experts(c);
  for (const bool slides : layers_that_slide(c)) {
    const auto i = static_cast<size_t>(layer_count(m));
    add_layer(m, pre_norm(m.final_norm, slides ? sliding : full,
                          sparse[i] ? Operation{moe} : Operation{dense}));
  }
  m.guessing_layers = c.int_or("num_nextn_predict_layers", 0, 0, 64);
  m.renames = {{"mlp.gate.e_score_correction_bias", "mlp.e_score_correction_bias"},
               {"mlp.gate.e_score_correction_bias", "mlp.gate.e_score_correction_bias"}};
  rename_shared(m, "mlp.shared_experts");
  return m;
}

}  // namespace weir::model::family
