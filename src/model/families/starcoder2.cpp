// StarCoder 2: layer norms, biases everywhere, a feed-forward network without gate, and a window.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {
    .rms_norm_eps = 1e-5f, .num_key_value_heads = 2, .tied_head = true, .eps_key = "norm_epsilon"};

}  // namespace

ModelSpec starcoder2(const ConfigReader& c) {
  // What the model was trained with; it says the same again under names that are read.
  for (const char* key : {"activation_function", "layer_norm_epsilon"}) c.ignore(key);
  expect_string(c, "mlp_type", "default");
  expect_string(c, "norm_type", "layer_norm");
  ModelSpec m = layer_norm_decoder(c, kDefaults);
  const bool bias = c.bool_or("use_bias", true);
  Attention attn = gqa(c, kDefaults);
  attn.window = sliding_window(c, 0);
  attn.qkv_bias = attn.out_bias = bias;
  const Dense ffn = {.width = ffn_width(c, "intermediate_size"),
                     .act = activation(c, "hidden_act", "gelu_pytorch_tanh"),
                     .gated = false,
                     .bias = bias};
  add_layers(m, num_layers(c), pre_norm(m.final_norm, attn, ffn));
  m.renames = {{"mlp.up_proj", "mlp.c_fc"}, {"mlp.down_proj", "mlp.c_proj"}};
  return m;
}

}  // namespace weir::model::family
