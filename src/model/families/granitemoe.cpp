// Granite with experts, in two tensors a layer, and with a shared expert beside them.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults;

ModelSpec routed(const ConfigReader& c, std::optional<Dense> shared) {
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  attn.scale = c.float_or("attention_multiplier", 1);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  const Moe moe = {.num_experts = c.int_or("num_local_experts", 8, 1),
                   .top_k = c.int_or("num_experts_per_tok", 2, 1),
                   .expert = gated_ffn(c, "intermediate_size"),
                   .router = {.score = Router::kSoftmaxOfTopK},
                   .shared = std::move(shared)};
  add_layers(m, num_layers(c), pre_norm(m.final_norm, attn, moe));
  granite_multipliers(c, m);
  m.renames = {{"mlp.gate", "block_sparse_moe.router.layer"},
               {"mlp.shared_expert.down_proj", "shared_mlp.output_linear"}};
  for (const char* part : {"gate_proj", "up_proj", "down_proj"})
    m.renames.emplace_back(std::string("mlp.switch_mlp.") + part,
                           std::string("block_sparse_moe.switch_mlp.") + part);
  m.fused = {
      {"shared_mlp.input_linear", {"mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj"}}};
  m.expert_tensors = {.gate_up = "block_sparse_moe.input_linear.weight",
                      .down = "block_sparse_moe.output_linear.weight"};
  return m;
}

}  // namespace

ModelSpec granitemoe(const ConfigReader& c) { return routed(c, std::nullopt); }

ModelSpec granitemoeshared(const ConfigReader& c) {
  const bool shared = c.int_or("shared_intermediate_size", 1024, 0) > 0;
  if (!shared) return routed(c, std::nullopt);
  Dense expert = gated_ffn(c, "intermediate_size");
  expert.width = c.int_or("shared_intermediate_size", 1024);
  return routed(c, expert);
}

}  // namespace weir::model::family
