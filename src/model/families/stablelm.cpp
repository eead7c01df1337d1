// StableLM: layer norms, of which heads may have their own, a quarter of a head turns, and
// attention and feed-forward network may stand side by side under one norm.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {
    .rms_norm_eps = 1e-5f, .partial_rotary_factor = 0.25f, .eps_key = "layer_norm_eps"};

}  // namespace

ModelSpec stablelm(const ConfigReader& c) {
  ModelSpec m = layer_norm_decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = c.bool_or("use_qkv_bias", false);
  attn.qk_norm = c.bool_or("qk_layernorm", false) ? Attention::kEachHead : Attention::kNoQkNorm;
  attn.qk_norm_kind = Norm::kLayer;
  attn.qk_norm_eps = m.final_norm.eps;
  const Dense ffn = gated_ffn(c, "intermediate_size");
  const bool parallel = c.bool_or("use_parallel_residual", false);
  add_layers(m, num_layers(c), (parallel ? parallel_norm : pre_norm)(m.final_norm, attn, ffn));
  m.renames = {{"self_attn.q_norm", "self_attn.q_layernorm.norms.*"},
               {"self_attn.k_norm", "self_attn.k_layernorm.norms.*"}};
  return m;
}

}  // namespace weir::model::family
