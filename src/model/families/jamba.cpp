// Jamba: Mamba with norms of its own inputs, every so many layers attention without positions;
// every so many layers experts, whose weights are not renormalised.
#include "model/families/mamba.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {
    .vocab_size = 65536, .num_attention_heads = 32, .context = 262144, .num_key_value_heads = 8};

Mamba1 mixer(const ConfigReader& c, const ModelSpec& m) {
  return {.inner = c.int_or("mamba_expand", 2, 1, kExpandMax) * m.hidden_size,
          .state_dim = c.int_or("mamba_d_state", 16, 1),
          .step_rank = step_rank(c, "mamba_dt_rank", m.hidden_size),
          .conv_taps = c.int_or("mamba_d_conv", 4, 1),
          .conv_bias = c.bool_or("mamba_conv_bias", true),
          .bias = c.bool_or("mamba_proj_bias", false),
          .norms = Mamba1::kWeighted,
          .norm_eps = m.final_norm.eps};
}

// One layer of each so many, from `offset` on.
struct Every {
  int period, offset;
  bool has(int layer) const { return layer % period == offset; }
};

Every every(const ConfigReader& c, const std::string& what, const Every& defaults) {
  constexpr int kPeriodMax = 1 << 16;
  const Every found = {.period = c.int_or(what + "_layer_period", defaults.period, 1, kPeriodMax),
                       .offset = c.int_or(what + "_layer_offset", defaults.offset, 0, kPeriodMax)};
  if (found.offset >= found.period)
    c.reject(what + "_layer_offset: expected less than " + what + "_layer_period, which is " +
             std::to_string(found.period) + ", found " + std::to_string(found.offset));
  return {.period = std::max(found.period, 1), .offset = found.offset};
}

void name_modules(ModelSpec& m) {
  m.renames = {{"norm", "model.final_layernorm"}, {"mlp.gate", "feed_forward.router"}};
  for (const std::string part : {"gate_proj", "up_proj", "down_proj"})
    for (const std::string of : {"", "experts.*.", "switch_mlp."})
      m.renames.emplace_back("mlp." + of + part, "feed_forward." + of + part);
  m.convolution = "mamba.conv1d";
  split_inputs(m);
}

}  // namespace

ModelSpec jamba(const ConfigReader& c) {
  for (const char* key : {"num_logits_to_keep", "use_mamba_kernels"}) c.ignore(key);
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  attn.rope.dim = 0;
  const Mamba1 mamba = mixer(c, m);
  const Dense dense = gated_ffn(c, "intermediate_size");
  const Moe moe = {.num_experts = c.int_or("num_experts", 16, 1),
                   .top_k = c.int_or("num_experts_per_tok", 2, 1),
                   .expert = dense,
                   .router = {.score = Router::kSoftmax}};
  const Every attention = every(c, "attn", {.period = 8, .offset = 4});
  const Every experts = every(c, "expert", {.period = 2, .offset = 1});
  for (int i = 0; i < num_layers(c); ++i) {
    std::vector<Sublayer> layer =
        pre_norm(m.final_norm, attention.has(i) ? Operation{attn} : Operation{mamba},
                 moe.num_experts > 1 && experts.has(i) ? Operation{moe} : Operation{dense});
    layer[1].pre->module = "pre_ff_layernorm";
    add_layer(m, std::move(layer));
  }
  name_modules(m);
  return m;
}

}  // namespace weir::model::family
