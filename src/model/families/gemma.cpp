// Gemma: norms stored as w and meaning 1 + w; embeddings scaled by sqrt(hidden). Gemma 2 and 3
// (text) have norms before and after each sublayer; sliding and full layers alternate. Gemma 2 caps
// logits, Gemma 3 normalises Q and K and gives sliding layers a rope of their own.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kGemma = {.num_key_value_heads = 16, .head_dim = 256, .tied_head = true};
constexpr Defaults kGemma2 = {.num_key_value_heads = 4, .head_dim = 256, .tied_head = true};
// Published models that take images leave out what is usual.
constexpr Defaults kGemma3 = {.vocab_size = 262208,
                              .num_attention_heads = 8,
                              .context = 131072,
                              .rope_theta = 1e6f,
                              .num_key_value_heads = 4,
                              .head_dim = 256,
                              .tied_head = true};
constexpr int kWindow = 4096;  // Where sliding_window is left out.

ModelSpec gemma_decoder(const ConfigReader& c, const Defaults& defaults, float logit_softcap) {
  c.expect_bool("use_bidirectional_attention", false);
  c.ignore("hidden_act");  // Says "gelu" where the tanh form is meant.
  ModelSpec m = decoder(c, defaults);
  m.embed_scale = std::sqrt(static_cast<float>(m.hidden_size));
  m.logit_softcap = softcap(c, "final_logit_softcapping", logit_softcap);
  m.final_norm.weight_offset = 1;
  return m;
}

Dense gemma_ffn(const ConfigReader& c) {
  return Dense{.width = ffn_width(c, "intermediate_size"),
               .act = activation(c, "hidden_activation", "gelu_pytorch_tanh")};
}

Attention biased_gqa(const ConfigReader& c, const Defaults& defaults) {
  Attention attn = gqa(c, defaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  return attn;
}

Attention gemma_attention(const ConfigReader& c, const Defaults& defaults, float logit_softcap) {
  Attention attn = biased_gqa(c, defaults);
  attn.scale = 1 / std::sqrt(c.float_or("query_pre_attn_scalar", 256));
  attn.logit_softcap = softcap(c, "attn_logit_softcapping", logit_softcap);
  return attn;
}

void add_layers(const ConfigReader& c, const Attention& sliding, const Attention& full,
                const std::function<bool(int)>& slides, ModelSpec& m) {
  const Dense ffn = gemma_ffn(c);
  for (const bool slide : sliding_layers(c, slides))
    add_layer(m, sandwich_norm(m.final_norm, slide ? sliding : full, ffn));
}

}  // namespace

ModelSpec gemma(const ConfigReader& c) {
  ModelSpec m = gemma_decoder(c, kGemma, 0);
  // Here hidden_act counts where the later key is null, as the references have it.
  const char* key = c.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  const Dense ffn = {.width = ffn_width(c, "intermediate_size"),
                     .act = activation(c, key, "gelu_pytorch_tanh")};
  add_layers(m, num_layers(c), pre_norm(m.final_norm, biased_gqa(c, kGemma), ffn));
  return m;
}

ModelSpec gemma2(const ConfigReader& c) {
  ModelSpec m = gemma_decoder(c, kGemma2, 30);
  const Attention full = gemma_attention(c, kGemma2, 50);
  Attention sliding = full;
  sliding.window = sliding_window(c, kWindow);
  add_layers(
      c, sliding, full, [](int layer) { return layer % 2 == 0; }, m);
  return m;
}

ModelSpec gemma3_text(const ConfigReader& c) {
  ModelSpec m = gemma_decoder(c, kGemma3, 0);
  Attention full = gemma_attention(c, kGemma3, 0);
  full.qk_norm = Attention::kPerHead;
  full.qk_norm_offset = 1;
  full.qk_norm_eps = m.final_norm.eps;

  Attention sliding = full;
  sliding.window = sliding_window(c, kWindow);
  sliding.rope = sliding_rope(c, full, c.float_or("rope_local_base_freq", 10000));

  const int pattern =
      c.int_or("sliding_window_pattern", c.int_or("_sliding_window_pattern", 6, 1), 1);
  add_layers(
      c, sliding, full, [=](int layer) { return (layer + 1) % pattern != 0; }, m);
  return m;
}

}  // namespace weir::model::family
