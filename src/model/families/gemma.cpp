// Gemma 2 and 3 (text): norms before and behind each sublayer, stored as w and meaning 1 + w;
// embeddings scaled by sqrt(hidden); sliding and full layers alternate. Gemma 2 caps logits, Gemma
// 3 normalises Q and K and gives sliding layers a rope of their own.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

ModelSpec gemma(const ConfigReader& c) {
  c.expect_bool("attention_bias", false);
  c.ignore("hidden_act");  // Says "gelu" where the tanh form is meant.
  ModelSpec m = decoder(c, /*tied_by_default=*/true);
  m.embed_scale = std::sqrt(static_cast<float>(m.hidden_size));
  m.logit_softcap = c.float_or("final_logit_softcapping", 0);
  m.final_norm.weight_offset = 1;
  gemma_norm_names(m);
  return m;
}

DenseFfn gemma_ffn(const ConfigReader& c) {
  return DenseFfn{.width = c.require_int("intermediate_size", 1),
                  .act = activation(c, "hidden_activation", "gelu_pytorch_tanh")};
}

Attention gemma_attention(const ConfigReader& c) {
  Attention attn = gqa(c);
  attn.scale = 1 / std::sqrt(c.float_or("query_pre_attn_scalar", 256));
  attn.logit_softcap = c.float_or("attn_logit_softcapping", 0);
  return attn;
}

}  // namespace

ModelSpec gemma2(const ConfigReader& c) {
  ModelSpec m = gemma(c);
  const Attention full = gemma_attention(c);
  Attention sliding = full;
  sliding.window = c.int_or("sliding_window", 4096, 1);
  const std::vector<std::string> types = c.strings("layer_types");
  for (int i = 0; i < num_layers(c); ++i) {
    const Attention& attn = slides(types, i, i % 2 == 0) ? sliding : full;
    m.layers.push_back(sandwich_norm(m.final_norm, attn, gemma_ffn(c)));
  }
  return m;
}

ModelSpec gemma3_text(const ConfigReader& c) {
  c.expect_bool("use_bidirectional_attention", false);
  ModelSpec m = gemma(c);
  Attention full = gemma_attention(c);
  full.qk_norm = Attention::kPerHead;
  full.qk_norm_offset = 1;
  full.qk_norm_eps = m.final_norm.eps;

  Attention sliding = full;
  sliding.window = c.int_or("sliding_window", 4096, 1);
  if (c.child("rope_parameters")) {
    sliding.rope = rope(c, full.head_dim, "sliding_attention");
    c.ignore("rope_local_base_freq");
  } else {
    sliding.rope = Rope{.theta = c.float_or("rope_local_base_freq", 10000), .dim = full.rope.dim};
  }

  const int pattern =
      c.int_or("sliding_window_pattern", c.int_or("_sliding_window_pattern", 6, 1), 1);
  const std::vector<std::string> types = c.strings("layer_types");
  for (int i = 0; i < num_layers(c); ++i) {
    const Attention& attn = slides(types, i, (i + 1) % pattern != 0) ? sliding : full;
    m.layers.push_back(sandwich_norm(m.final_norm, attn, gemma_ffn(c)));
  }
  return m;
}

}  // namespace weir::model::family
