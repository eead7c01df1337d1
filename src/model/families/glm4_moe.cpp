// Experts by DeepSeek V3's routing under grouped-query attention: GLM-4.5, dots1 and Solar Open; or
// under latent attention: GLM-4.7-Flash, and GLM-5, whose tokens an indexer chooses. The first
// layers may be dense.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kGlm4 = {
    .rms_norm_eps = 1e-5f, .num_key_value_heads = 8, .partial_rotary_factor = 0.5f};
constexpr Defaults kLite = {.rms_norm_eps = 1e-5f};
constexpr LatentSizes kLiteSizes = {.q_rank = 768, .nope_dim = 192, .v_head_dim = 256};
constexpr BiasedExperts kLiteExperts = {.count = 64, .top_k = 4, .scale = 1.8f};
constexpr LatentSizes kGlm5Sizes = {.q_rank = 2048, .nope_dim = 192, .v_head_dim = 256};
constexpr IndexerSizes kGlm5Indexer = {.heads = 32};
constexpr BiasedExperts kGlm5Experts = {.count = 256, .scale = 2.5f};
constexpr Defaults kDots1;
constexpr Defaults kSolar = {
    .rms_norm_eps = 1e-5f, .rope_theta = 1e6f, .num_key_value_heads = 8, .head_dim = 128};

void normalise_heads(const ConfigReader& c, const Defaults& defaults, Attention& attn) {
  attn.qk_norm = Attention::kPerHead;
  attn.qk_norm_eps = rms(c, defaults).eps;
}

}  // namespace

ModelSpec glm4_moe(const ConfigReader& c) {
  Attention attn = gqa(c, kGlm4);
  attn.qkv_bias = c.bool_or("attention_bias", false);
  if (c.bool_or("use_qk_norm", false)) normalise_heads(c, kGlm4, attn);
  return first_dense(c, kGlm4, biased_moe(c, {}), 1, [=](int) { return attn; });
}

ModelSpec glm4_moe_lite(const ConfigReader& c) {
  const LatentAttention attention = latent_attention(c, kLiteSizes);
  return first_dense(c, kLite, biased_moe(c, kLiteExperts), 1, [=](int) { return attention; });
}

ModelSpec glm_moe_dsa(const ConfigReader& c) {
  c.ignore("ep_size");
  const LatentAttention attention = sparse_latent_attention(c, kGlm5Sizes, kGlm5Indexer);
  return first_dense(c, kLite, biased_moe(c, kGlm5Experts), 3, [=](int) { return attention; });
}

ModelSpec solar_open(const ConfigReader& c) {
  Attention attn = gqa(c, kSolar);
  attn.qkv_bias = c.bool_or("attention_bias", false);
  if (c.bool_or("use_qk_norm", false)) normalise_heads(c, kSolar, attn);
  return first_dense(c, kSolar, biased_moe(c, {}), 0, [=](int) { return attn; });
}

ModelSpec dots1(const ConfigReader& c) {
  c.expect_int("moe_layer_freq", 1);
  Attention attn = gqa(c, kDots1);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  normalise_heads(c, kDots1, attn);
  const int window = sliding_window(c, 4096);
  const bool used = c.bool_or("use_sliding_window", true);
  const int from = c.int_or("max_window_layers", 62);
  const std::vector<bool> slides = sliding_layers(c, [=](int layer) { return layer >= from; });
  const Moe moe = biased_moe(c, {.shared = 0, .renormalise = false});
  return first_dense(c, kDots1, moe, 0, [=](int layer) {
    Attention windowed = attn;
    windowed.window = used && slides[static_cast<size_t>(layer)] ? window : 0;
    return windowed;
  });
}

}  // namespace weir::model::family
