// LongCat-Flash: a layer has two halves of latent attention and a dense network each. Its experts,
// some of which give what they read, read what the first network reads, and are added at the end of
// the layer.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f};
constexpr LatentSizes kSizes = {.rope_theta = 1e7f};

LatentAttention attention(const ConfigReader& c) {
  expect_string(c, "attention_method", "MLA");
  LatentAttention a = latent_attention(c, kSizes);
  const float hidden = c.require_float("hidden_size");
  const auto scale_of = [&](int rank) { return std::sqrt(hidden / static_cast<float>(rank)); };
  // Queries' latent is scaled by what scales their products.
  if (c.bool_or("mla_scale_q_lora", true) && a.q_rank > 0) a.scale *= scale_of(a.q_rank);
  if (c.bool_or("mla_scale_kv_lora", true) && a.kv_rank > 0) a.latent_scale = scale_of(a.kv_rank);
  return a;
}

Moe experts(const ConfigReader& c) {
  c.expect_bool("router_bias", false);  // Stored, it is read by some of the references only.
  expect_string(c, "zero_expert_type", "identity");
  return {.num_experts = c.int_or("n_routed_experts", 512, 1),
          .zero_experts = c.int_or("zero_expert_num", c.is_null("zero_expert_num") ? 0 : 256, 0),
          .top_k = c.int_or("moe_topk", 12, 1),
          .expert = gated_ffn(c, "expert_ffn_hidden_size"),
          .router = {.score = Router::kSoftmax,
                     .selection_bias = true,
                     .renormalise = c.bool_or("norm_topk_prob", false),
                     .epsilon = 1e-20f,
                     .scale = c.float_or("routed_scaling_factor", 6)}};
}

}  // namespace

ModelSpec longcat_flash(const ConfigReader& c) {
  c.ignore("num_hidden_layers");  // Halves, where transformers writes it.
  ModelSpec m = decoder(c, kDefaults);
  const Sublayer attends = {.op = attention(c), .pre = named(m.final_norm, "input_layernorm.#")};
  const Norm norm = named(m.final_norm, "post_attention_layernorm.#");
  const Dense dense = gated_ffn(c, "ffn_hidden_size");
  const Moe moe = experts(c);
  for (int i = 0; i < num_layers(c, "num_layers"); ++i) {
    add_layer(m, {attends,
                  {.op = moe, .pre = norm, .held = true},
                  {.op = dense, .input = Sublayer::kSameAsBefore}});
    add_layer(m, {attends, {.op = dense, .pre = norm, .adds_held = true}});
  }
  m.layers_in_one = 2;
  for (const std::string part :
       {"q_proj", "q_a_proj", "q_a_layernorm", "q_b_proj", "o_proj", "kv_a_proj_with_mqa",
        "kv_a_layernorm", "kv_b_proj", "embed_q", "unembed_out"})
    m.renames.emplace_back("self_attn." + part, "self_attn.#." + part);
  for (const std::string part : {"gate_proj", "up_proj", "down_proj"})
    m.renames.emplace_back("mlp." + part, "mlps.#." + part);
  m.renames.emplace_back("mlp.gate", "mlp.router.classifier");
  m.renames.emplace_back("mlp.gate.e_score_correction_bias", "mlp.router.e_score_correction_bias");
  return m;
}

}  // namespace weir::model::family
