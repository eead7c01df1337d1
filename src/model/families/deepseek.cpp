// DeepSeek V2, V3 and V3.2: multi-head latent attention; experts chosen by softmax, or by sigmoid
// and a bias, within the best groups where config.json asks for it, and shared experts beside them.
// Kimi K2 and Moonlight are V3. V3.2 attends to the tokens that an indexer chooses.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {};
constexpr BiasedExperts kV3Experts = {.count = 256, .scale = 2.5f, .groups = 8, .groups_kept = 4};

void ignore_training(const ConfigReader& c) {
  for (const char* key : {"ep_size", "aux_loss_alpha", "seq_aux"}) c.ignore(key);
}

Router router(const ConfigReader& c) {
  expect_string(c, "scoring_func", "softmax");
  const std::string method = c.string_or("topk_method", "greedy");
  if (method != "greedy" && method != "group_limited_greedy")
    c.reject("topk_method: expected greedy or group_limited_greedy, found \"" +
             method.substr(0, 80) + "\"");
  Router r = {.score = Router::kSoftmax, .group_score = Router::kBest};
  const int groups = c.int_or("n_group", 1, 1), kept = c.int_or("topk_group", 1, 1);
  if (method == "group_limited_greedy") r.groups = groups, r.groups_kept = kept;
  r.renormalise = c.bool_or("norm_topk_prob", false);
  r.epsilon = r.renormalise ? 1e-20f : 0;
  // DeepSeek's own code multiplies weights by it that it does not renormalise.
  const float factor = c.float_or("routed_scaling_factor", 1);
  if (!r.renormalise) r.scale = factor;
  return r;
}

Moe experts(const ConfigReader& c) {
  Moe moe = {.num_experts = c.int_or("n_routed_experts", 64, 1),
             .top_k = c.require_int("num_experts_per_tok", 1),
             .expert = gated_ffn(c, "moe_intermediate_size"),
             .router = router(c)};
  constexpr int kSharedMax = 64;
  const int shared = c.is_null("n_shared_experts") ? 0 : 2;
  moe.shared = shared_experts(moe.expert, c.int_or("n_shared_experts", shared, 0, kSharedMax));
  return moe;
}

}  // namespace

ModelSpec deepseek_v2(const ConfigReader& c) {
  ignore_training(c);
  const LatentAttention attention = latent_attention(c, {});
  return first_dense(c, kDefaults, experts(c), 0, [=](int) { return attention; });
}

ModelSpec deepseek_v3(const ConfigReader& c) {
  ignore_training(c);
  const LatentAttention attention = latent_attention(c, {});
  return first_dense(c, kDefaults, biased_moe(c, kV3Experts), 3, [=](int) { return attention; });
}

ModelSpec deepseek_v32(const ConfigReader& c) {
  ignore_training(c);
  const LatentAttention attention = sparse_latent_attention(c, {}, {});
  return first_dense(c, kDefaults, biased_moe(c, kV3Experts), 3, [=](int) { return attention; });
}

// Kimi K2 beside images.
ModelSpec kimi_k25(const ConfigReader& c) {
  for (const char* key : {"ignore_index", "media_placeholder_token_id", "pad_token_id",
                          "use_unified_vision_chunk", "video_placeholder", "vocab_size"})
    c.ignore(key);
  return text_within(c, deepseek_v3, {"language_model.model."}, {"mm_projector.", "vision_tower."});
}

}  // namespace weir::model::family
