// SmolLM3: Llama, of which some layers have no rope; these may slide.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rope_theta = 2e6f, .num_key_value_heads = 4, .tied_head = true};

// Which layers have a rope: 0 or 1 for each, or all but every so manieth.
std::vector<bool> turning_layers(const ConfigReader& c) {
  std::vector<bool> turns(static_cast<size_t>(num_layers(c)));
  const std::vector<int> listed = c.ints("no_rope_layers", 0);
  const int interval = c.int_or("no_rope_layer_interval", 4, 1);
  if (!listed.empty() && listed.size() < turns.size())
    c.reject("no_rope_layers: expected one for each of " + std::to_string(turns.size()) +
             " layers, found " + std::to_string(listed.size()));
  for (size_t i = 0; i < turns.size(); ++i)
    turns[i] = i < listed.size() ? listed[i] != 0 : (static_cast<int>(i) + 1) % interval != 0;
  return turns;
}

}  // namespace

ModelSpec smollm3(const ConfigReader& c) {
  for (const char* key : {"pretraining_tp", "max_window_layers"}) c.ignore(key);  // No part.
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  Dense ffn = gated_ffn(c, "intermediate_size");
  ffn.bias = c.bool_or("mlp_bias", false);
  const bool used = c.bool_or("use_sliding_window", false);
  const int window = sliding_window(c, 0);
  const std::vector<bool> turns = turning_layers(c);
  const std::vector<bool> slides =
      sliding_layers(c, [&](int i) { return !turns[static_cast<size_t>(i)]; });
  for (size_t i = 0; i < turns.size(); ++i) {
    Attention one = attn;
    if (!turns[i]) one.rope = {};
    one.window = used && slides[i] ? window : 0;
    add_layer(m, pre_norm(m.final_norm, one, ffn));
  }
  return m;
}

}  // namespace weir::model::family
