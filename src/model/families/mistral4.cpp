// Mistral 4: latent attention whose queries grow with their position, and experts chosen by
// softmax, within the best groups where config.json asks for it.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults;
constexpr LatentSizes kSizes = {.q_rank = 1024, .kv_rank = 256, .nope_dim = 64};

LatentAttention attention(const ConfigReader& c) {
  LatentAttention a = latent_attention(c, kSizes);
  if (!c.has("rope_parameters") && !c.has("rope_scaling")) {
    a.rope.scaling = Rope::kYarn;
    a.rope.factor = 128;
    a.rope.original_context = 8192;
    a.position_beta = 0.1f;
    a.position_step = 8192;
  }
  a.scale = 1 / std::sqrt(static_cast<float>(a.q_dim()));  // Whatever mscale_all_dim says.
  return a;
}

Moe experts(const ConfigReader& c) {
  Moe moe = {.num_experts = c.int_or("n_routed_experts", 128, 1),
             .top_k = c.int_or("num_experts_per_tok", 4, 1),
             .expert = gated_ffn(c, "moe_intermediate_size"),
             .router = {.score = Router::kSoftmax,
                        .group_score = Router::kTwoBest,
                        .groups = c.int_or("n_group", 1, 1),
                        .groups_kept = c.int_or("topk_group", 1, 1),
                        .renormalise = c.bool_or("norm_topk_prob", true),
                        .epsilon = 1e-20f,
                        .scale = c.float_or("routed_scaling_factor", 1)}};
  moe.shared = shared_experts(moe.expert, c.int_or("n_shared_experts", 1, 0, 64));
  return moe;
}

}  // namespace

ModelSpec mistral4(const ConfigReader& c) {
  const LatentAttention latent = attention(c);
  ModelSpec m = first_dense(c, kDefaults, experts(c), 0, [=](int) { return latent; });
  m.expert_tensors = {.gate_up = "mlp.experts.gate_up_proj", .down = "mlp.experts.down_proj"};
  return m;
}

}  // namespace weir::model::family
