// Phi-3 and Phi-4: Llama's arithmetic with fused projections, LongRoPE and partial rotary.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f};

}  // namespace

ModelSpec phi3(const ConfigReader& c) {
  c.expect_bool("attention_bias", false);
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  attn.window = sliding_window(c, 0);
  c.ignore("original_max_position_embeddings");  // Only LongRoPE asks.
  const Dense ffn = gated_ffn(c, "intermediate_size");
  add_layers(m, num_layers(c), pre_norm(m.final_norm, attn, ffn));
  m.fused = {{"self_attn.qkv_proj", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}},
             {"mlp.gate_up_proj", {"mlp.gate_proj", "mlp.up_proj"}}};
  return m;
}

}  // namespace weir::model::family
