// GLM-4 (2024): half of a head turns, neighbour with neighbour; gate and up are one matrix. Glm4
// (0414) has a norm also after each sublayer.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1.5625e-7f,
                                .num_key_value_heads = 2,
                                .head_dim = 128,
                                .partial_rotary_factor = 0.5f};

std::vector<Sublayer> layer(const ConfigReader& c, const Norm& norm) {
  Attention attn = gqa(c, kDefaults);
  attn.rope.layout = Rope::kInterleaved;
  attn.qkv_bias = c.bool_or("attention_bias", true);
  return pre_norm(norm, attn, gated_ffn(c, "intermediate_size"));
}

ModelSpec glm_of(const ConfigReader& c, const std::vector<Sublayer>& sublayers) {
  ModelSpec m = decoder(c, kDefaults);
  add_layers(m, num_layers(c), sublayers);
  m.fused = {{"mlp.gate_up_proj", {"mlp.gate_proj", "mlp.up_proj"}}};
  return m;
}

}  // namespace

ModelSpec glm(const ConfigReader& c) { return glm_of(c, layer(c, rms(c, kDefaults))); }

ModelSpec glm4(const ConfigReader& c) {
  std::vector<Sublayer> sublayers = layer(c, rms(c, kDefaults));
  for (const auto& [i, module] :
       {std::pair{0, "post_self_attn_layernorm"}, {1, "post_mlp_layernorm"}}) {
    Norm after = rms(c, kDefaults);
    after.module = module;
    sublayers[static_cast<size_t>(i)].post = after;
  }
  return glm_of(c, sublayers);
}

}  // namespace weir::model::family
