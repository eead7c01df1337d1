// MiniCPM: Llama with scaled embeddings, sublayers and logits; MiniCPM 3 with latent attention.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kMiniCpm = {.tied_head = true};
constexpr Defaults kMiniCpm3 = {.rms_norm_eps = 1e-5f, .tied_head = true};

// What a family takes for the keys of its scales that are missing.
struct Scales {
  float embed = 1, depth = 1, base = 1;
};
constexpr Scales kScales3 = {.embed = 12, .depth = 1.4f, .base = 256};

// Null is no scale.
ModelSpec scaled(const ConfigReader& c, const Defaults& defaults, const Scales& scales,
                 const Operation& attention) {
  ModelSpec m = decoder(c, defaults);
  add_layers(m, num_layers(c),
             pre_norm(m.final_norm, attention, gated_ffn(c, "intermediate_size")));
  const auto hidden = static_cast<float>(std::max(m.hidden_size, 1));
  const float depth = std::sqrt(static_cast<float>(std::max(num_layers(c), 1)));
  const auto or_none = [&](const char* key, float fallback, float none) {
    return c.float_or(key, c.is_null(key) ? none : fallback);
  };
  m.embed_scale = or_none("scale_emb", scales.embed, 1);
  m.logit_scale = or_none("dim_model_base", scales.base, hidden) / hidden;
  for (Sublayer& sublayer : m.sublayers)
    sublayer.scale = or_none("scale_depth", scales.depth, depth) / depth;
  return m;
}

}  // namespace

ModelSpec minicpm(const ConfigReader& c) {
  Attention attn = gqa(c, kMiniCpm);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  c.ignore("mup_denominator");  // Of layers that guess further tokens.
  return scaled(c, kMiniCpm, {}, attn);
}

ModelSpec minicpm3(const ConfigReader& c) {
  const int heads = c.int_or("num_attention_heads", 1, 1);
  const LatentSizes sizes = {.q_rank = 768,
                             .kv_rank = 256,
                             .nope_dim = 64,
                             .rope_dim = 32,
                             .v_head_dim = c.int_or("hidden_size", 0, 0) / std::max(heads, 1)};
  LatentAttention attention = latent_attention(c, sizes);
  attention.rope.layout = Rope::kHalf;
  return scaled(c, kMiniCpm3, kScales3, attention);
}

}  // namespace weir::model::family
