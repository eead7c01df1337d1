// GLM-4 (2024): half of a head turns, neighbour with neighbour; gate and up are one matrix. Glm4
// (0414) has a norm also after each sublayer, as has the text of GLM-4.1V and GLM-OCR.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1.5625e-7f,
                                .num_key_value_heads = 2,
                                .head_dim = 128,
                                .partial_rotary_factor = 0.5f};

// Of GLM-4.1V, and of GLM-OCR, whose heads turn as a whole.
constexpr Defaults kGlm4v = {
    .rms_norm_eps = 1e-5f, .num_key_value_heads = 2, .partial_rotary_factor = 0.5f};
constexpr Defaults kGlmOcr = {.rms_norm_eps = 1e-5f, .num_key_value_heads = 8};

Attention attention(const ConfigReader& c, const Defaults& defaults, bool bias) {
  Attention attn = gqa(c, defaults);
  attn.rope.layout = Rope::kInterleaved;
  attn.qkv_bias = c.bool_or("attention_bias", bias);
  return attn;
}

std::vector<Sublayer> layer(const ConfigReader& c, const Defaults& defaults,
                            const Attention& attn) {
  return pre_norm(rms(c, defaults), attn, gated_ffn(c, "intermediate_size"));
}

// A norm after each sublayer as well.
std::vector<Sublayer> layer_of_norms(const ConfigReader& c, const Defaults& defaults,
                                     const Attention& attn) {
  std::vector<Sublayer> sublayers = layer(c, defaults, attn);
  for (const auto& [i, module] :
       {std::pair{0, "post_self_attn_layernorm"}, {1, "post_mlp_layernorm"}})
    sublayers[static_cast<size_t>(i)].post = named(rms(c, defaults), module);
  return sublayers;
}

ModelSpec glm_of(const ConfigReader& c, const Defaults& defaults,
                 const std::vector<Sublayer>& sublayers) {
  ModelSpec m = decoder(c, defaults);
  add_layers(m, num_layers(c), sublayers);
  m.fused = {{"mlp.gate_up_proj", {"mlp.gate_proj", "mlp.up_proj"}}};
  return m;
}

}  // namespace

ModelSpec glm(const ConfigReader& c) {
  return glm_of(c, kDefaults, layer(c, kDefaults, attention(c, kDefaults, true)));
}

ModelSpec glm4(const ConfigReader& c) {
  return glm_of(c, kDefaults, layer_of_norms(c, kDefaults, attention(c, kDefaults, true)));
}

ModelSpec glm4v_text(const ConfigReader& c) {
  const Attention attn = by_three_positions(c, attention(c, kGlm4v, true));
  return glm_of(c, kGlm4v, layer_of_norms(c, kGlm4v, attn));
}

ModelSpec glm_ocr_text(const ConfigReader& c) {
  const Attention attn = by_three_positions(c, attention(c, kGlmOcr, false));
  ModelSpec m = glm_of(c, kGlmOcr, layer_of_norms(c, kGlmOcr, attn));
  m.guessing_layers = c.int_or("num_nextn_predict_layers", 1, 0, 64);
  return m;
}

}  // namespace weir::model::family
