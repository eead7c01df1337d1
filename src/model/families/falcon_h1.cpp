// Falcon-H1: Mamba 2 and attention side by side in each layer, with factors on nearly everything.
#include "model/families/mamba.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.vocab_size = 128000,
                                .num_attention_heads = 32,
                                .context = 8192,
                                .rms_norm_eps = 1e-5f,
                                .rope_theta = 100000,
                                .num_key_value_heads = 8};

std::vector<float> multipliers(const ConfigReader& c, const char* key, size_t count) {
  std::vector<float> factors = c.floats(key);
  if (!factors.empty() && factors.size() != count)
    c.reject(std::string(key) + ": expected " + std::to_string(count) + " numbers, found " +
             std::to_string(factors.size()));
  factors.resize(count, 1);
  return factors;
}

Mamba2 mamba(const ConfigReader& c, const ModelSpec& m) {
  c.ignore("mlp_expansion_factor");  // intermediate_size says it.
  c.expect_bool("mamba_use_mlp", true);
  c.expect_bool("mamba_proj_bias", false);  // Factors would not multiply it.
  Mamba2 mamba = prefixed_mamba2(c, m);
  const bool norm = c.bool_or("mamba_rms_norm", false);
  const bool last = c.bool_or("mamba_norm_before_gate", true);
  mamba.gate = !norm ? Mamba2::kNoNorm : last ? Mamba2::kAfterNorm : Mamba2::kBeforeNorm;
  mamba.norm_groups = mamba.groups;
  const std::vector<float> factors = multipliers(c, "ssm_multipliers", mamba.factors.size());
  const float all = c.float_or("ssm_in_multiplier", 1);
  for (size_t i = 0; i < mamba.factors.size(); ++i) mamba.factors[i] = all * factors[i];
  return mamba;
}

}  // namespace

ModelSpec falcon_h1(const ConfigReader& c) {
  c.ignore("num_logits_to_keep");
  c.expect_bool("attention_bias", false);
  c.expect_bool("projectors_bias", false);
  ModelSpec m = decoder(c, kDefaults);
  // What multiplies the input of attention multiplies queries, keys and values.
  Attention attn = gqa(c, kDefaults);
  const float in = c.float_or("attention_in_multiplier", 1);
  attn.scale *= in * in * c.float_or("key_multiplier", 1);
  Dense ffn = gated_ffn(c, "intermediate_size");
  ffn.bias = c.bool_or("mlp_bias", false);
  const std::vector<float> mlp = multipliers(c, "mlp_multipliers", 2);
  ffn.gate_factor = mlp[0];
  std::vector<Sublayer> layer = parallel_norm(m.final_norm, mamba(c, m), attn);
  layer[0].scale = c.float_or("ssm_out_multiplier", 1);
  layer[1].scale = in * c.float_or("attention_out_multiplier", 1);
  layer.push_back({.op = ffn, .pre = m.final_norm, .scale = mlp[1]});
  layer[2].pre->module = "pre_ff_layernorm";
  add_layers(m, num_layers(c), layer);
  m.embed_scale = c.float_or("embedding_multiplier", 1);
  m.logit_scale = c.float_or("lm_head_multiplier", 1);
  m.renames = {{"norm", "model.final_layernorm"}};
  for (const std::string part : {"gate_proj", "up_proj", "down_proj"})
    m.renames.emplace_back("mlp." + part, "feed_forward." + part);
  m.convolution = "mamba.conv1d";
  return m;
}

}  // namespace weir::model::family
