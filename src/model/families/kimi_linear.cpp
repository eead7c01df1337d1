// Kimi Linear: gated delta nets with a decay for each element of a key, and after some of them a
// layer of latent attention without rope; experts chosen by sigmoid and a learned bias.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f};
constexpr int kSizeMax = 1 << 19;

GatedDelta delta_attention(const ConfigReader& c, const ConfigReader& linear) {
  const int heads = linear.require_int("num_heads", 1, kSizeMax);
  const int dim = linear.require_int("head_dim", 1, kSizeMax);
  return GatedDelta{.key_heads = heads,
                    .value_heads = heads,
                    .key_dim = dim,
                    .value_dim = dim,
                    .conv_taps = linear.int_or("short_conv_kernel_size", 4),
                    .key_decays = true,
                    .decay_rank = dim,
                    .gate_rank = dim,
                    .sigmoid_gate = true,
                    .norm_eps = rms(c, kDefaults).eps};
}

LatentAttention attention_without_rope(const ConfigReader& c) {
  c.expect_bool("mla_use_nope", true);
  LatentAttention a = latent_attention(c, {.q_rank = 0});
  a.rope = {.dim = 0};
  return a;
}

Moe experts(const ConfigReader& c) {
  constexpr int kSharedMax = 64;
  const std::string score = c.string_or("moe_router_activation_func", "sigmoid");
  if (score != "sigmoid" && score != "softmax")
    c.reject("moe_router_activation_func: expected sigmoid or softmax, found \"" +
             score.substr(0, 80) + "\"");
  Moe moe = {.num_experts = c.require_int("num_experts", 1),
             .top_k = c.require_int("num_experts_per_token", 1),
             .expert = gated_ffn(c, "moe_intermediate_size"),
             .router = {.score = score == "softmax" ? Router::kSoftmax : Router::kSigmoid,
                        .selection_bias = true,
                        .group_score = Router::kTwoBest,
                        .groups = c.int_or("num_expert_group", 1, 1),
                        .groups_kept = c.int_or("topk_group", 1, 1),
                        .renormalise = c.bool_or("moe_renormalize", true),
                        .epsilon = 1e-20f,
                        .scale = c.float_or("routed_scaling_factor", 1)}};
  if (!c.bool_or("use_grouped_topk", true)) moe.router.groups = moe.router.groups_kept = 1;
  if (moe.top_k == 1) moe.router.renormalise = false;
  moe.shared = shared_experts(moe.expert, c.int_or("num_shared_experts", 0, 0, kSharedMax));
  return moe;
}

void name_modules(ModelSpec& m) {
  for (const char* part : {"A_log", "dt_bias", "b_proj", "f_a_proj", "f_b_proj", "g_a_proj",
                           "g_b_proj", "k_proj", "o_norm", "o_proj", "q_proj", "v_proj"})
    m.renames.emplace_back(std::string("linear_attn.") + part, std::string("self_attn.") + part);
  for (const std::string part : {"q", "k", "v"})
    for (const char* stored : {"_conv1d", "_conv.conv"})  // As published; MLX's.
      m.renames.emplace_back("linear_attn." + part + "_conv1d", "self_attn." + part + stored);
  // MLX's converter moves experts to mlp.
  const std::string bias = "gate.e_score_correction_bias";
  m.renames.emplace_back("mlp." + bias, "block_sparse_moe." + bias);
  m.renames.emplace_back("mlp." + bias, "mlp.e_score_correction_bias");
  rename_block_sparse(m);
  for (const auto& [part, stored] : std::vector(m.renames))
    if (part == "mlp.gate" || part.starts_with("mlp.switch_mlp."))
      m.renames.emplace_back(part, part);
  rename_shared(m, "block_sparse_moe.shared_experts");
}

}  // namespace

ModelSpec kimi_linear(const ConfigReader& c) {
  const auto linear = c.child("linear_attn_config");
  if (!linear) {
    c.reject("linear_attn_config: expected the delta layers' heads, found none");
    return {};
  }
  linear->ignore("full_attn_layers");  // All others.
  const std::vector<int> delta_layers = linear->ints("kda_layers");
  const Operation delta = delta_attention(c, *linear), attention = attention_without_rope(c);
  Defaults defaults = kDefaults;
  if (!c.has(defaults.context_key)) defaults.context_key = "model_max_length";
  ModelSpec m = first_dense(c, defaults, experts(c), 0, [&](int layer) {
    // They count from 1.
    return std::ranges::count(delta_layers, layer + 1) > 0 ? delta : attention;
  });
  name_modules(m);
  return m;
}

}  // namespace weir::model::family
