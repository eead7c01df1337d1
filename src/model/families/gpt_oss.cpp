// gpt-oss: every layer routes to experts with a clamped activation and biases; attention has sinks,
// and a window on every other layer.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {
    .rms_norm_eps = 1e-5f, .rope_theta = 150000, .num_key_value_heads = 8, .head_dim = 64};

}  // namespace

ModelSpec gpt_oss(const ConfigReader& c) {
  c.ignore("hidden_act");              // Says "silu" where the clamped form is meant.
  c.ignore("initial_context_length");  // Is in rope_scaling.
  c.ignore("experts_per_token");       // num_experts_per_tok once more.
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", true);
  attn.sinks = true;
  const Moe moe = {.num_experts = c.int_or("num_local_experts", 128, 1),
                   .top_k = c.int_or("num_experts_per_tok", 4, 1),
                   .expert = {.width = ffn_width(c, "intermediate_size"),
                              .act = Act::kQuickGelu,
                              .bias = true,
                              .limit = c.float_or("swiglu_limit", 7),
                              .up_offset = 1},
                   .router = {.score = Router::kSoftmaxOfTopK, .bias = true}};
  const int window = sliding_window(c, 128);
  for (const bool slides : sliding_layers(c, [](int layer) { return layer % 2 == 0; })) {
    attn.window = slides ? window : 0;
    add_layer(m, pre_norm(m.final_norm, attn, moe));
  }
  m.renames = {{"mlp.gate", "mlp.router"}};
  for (const std::string part : {"gate_proj", "up_proj", "down_proj"})  // As MLX writes them.
    m.renames.emplace_back("mlp.switch_mlp." + part, "mlp.experts." + part);
  m.expert_tensors = {.gate_up = "mlp.experts.gate_up_proj",
                      .down = "mlp.experts.down_proj",
                      .transposed = true,
                      .interleaved = true};
  return m;
}

}  // namespace weir::model::family
