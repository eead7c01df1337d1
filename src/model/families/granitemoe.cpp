// Granite with experts, in two tensors a layer, and with a shared expert beside them; with layers
// of Mamba 2.
#include "model/families/mamba.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults;

Attention attention(const ConfigReader& c) {
  Attention attn = gqa(c, kDefaults);
  attn.scale = c.float_or("attention_multiplier", 1);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  return attn;
}

Moe mixture(const ConfigReader& c, std::optional<Dense> shared) {
  return {.num_experts = c.int_or("num_local_experts", 8, 1),
          .top_k = c.int_or("num_experts_per_tok", 2, 1),
          .expert = gated_ffn(c, "intermediate_size"),
          .router = {.score = Router::kSoftmaxOfTopK},
          .shared = std::move(shared)};
}

std::optional<Dense> shared_mlp(const ConfigReader& c) {
  const int width = c.int_or("shared_intermediate_size", 1024, 0);
  if (width == 0) return std::nullopt;
  Dense shared = gated_ffn(c, "intermediate_size");
  shared.width = width;
  return shared;
}

void name_mixture(ModelSpec& m) {
  m.renames = {{"mlp.gate", "block_sparse_moe.router.layer"},
               {"mlp.shared_expert.down_proj", "shared_mlp.output_linear"}};
  for (const char* part : {"gate_proj", "up_proj", "down_proj"})
    m.renames.emplace_back(std::string("mlp.switch_mlp.") + part,
                           std::string("block_sparse_moe.switch_mlp.") + part);
  m.fused = {
      {"shared_mlp.input_linear", {"mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj"}}};
  m.expert_tensors = {.gate_up = "block_sparse_moe.input_linear.weight",
                      .down = "block_sparse_moe.output_linear.weight"};
}

ModelSpec routed(const ConfigReader& c, std::optional<Dense> shared) {
  ModelSpec m = decoder(c, kDefaults);
  add_layers(m, num_layers(c), pre_norm(m.final_norm, attention(c), mixture(c, std::move(shared))));
  granite_multipliers(c, m);
  name_mixture(m);
  return m;
}

}  // namespace

ModelSpec granitemoe(const ConfigReader& c) { return routed(c, std::nullopt); }

ModelSpec granitemoeshared(const ConfigReader& c) { return routed(c, shared_mlp(c)); }

ModelSpec granitemoehybrid(const ConfigReader& c) {
  expect_string(c, "normalization_function", "rmsnorm");
  c.ignore("init_method");
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = attention(c);
  if (c.string_or("position_embedding_type", "nope") != "rope") attn.rope.dim = 0;
  const std::optional<Dense> shared = shared_mlp(c);
  const bool dense = c.int_or("num_local_experts", 8, 0) == 0;
  if (dense && !shared) c.reject("shared_intermediate_size: expected at least 1, found 0");
  const Operation ffn = dense ? Operation{shared.value_or(Dense{})} : mixture(c, shared);
  if (dense) c.ignore("num_experts_per_tok");
  const Mamba2 state_space = prefixed_mamba2(c, m);
  // Without layer_types all are Mamba's.
  for (const bool recurrent : layers_of_type(
           c, "mamba", [](int) { return true; }, "attention"))
    add_layer(m, pre_norm(m.final_norm, recurrent ? Operation{state_space} : Operation{attn}, ffn));
  granite_multipliers(c, m);
  name_mixture(m);
  if (dense) {
    m.fused = {{"shared_mlp.input_linear", {"mlp.gate_proj", "mlp.up_proj"}}};
    m.renames.emplace_back("mlp.down_proj", "shared_mlp.output_linear");
  }
  m.convolution = "mamba.conv1d";
  return m;
}

}  // namespace weir::model::family
