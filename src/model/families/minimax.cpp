// MiniMax (Text-01, M1): lightning attention between layers of softmax attention, experts by
// softmax, and residual streams that carry what a sublayer has read, not what was there before its
// norm. The family's own keys and those of transformers say the same.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.vocab_size = 32000,
                                .num_attention_heads = 32,
                                .context = 131072,
                                .rms_norm_eps = 1e-5f,
                                .rope_theta = 1e6f,
                                .num_key_value_heads = 8};

// Which layers fade: by layer_types, or the family's own list, in which they are 0.
std::vector<bool> fading(const ConfigReader& c) {
  const std::vector<int> list = c.ints("attn_type_list");
  const size_t layers = static_cast<size_t>(num_layers(c));
  if (!list.empty() && list.size() != layers)
    c.reject("attn_type_list: expected one for each of " + std::to_string(layers) +
             " layers, found " + std::to_string(list.size()));
  for (const int type : list)
    if (type != 0 && type != 1)
      c.reject("attn_type_list: expected 0 or 1, found " + std::to_string(type));
  return layers_of_type(c, "linear_attention", [&](int layer) {
    const auto i = static_cast<size_t>(layer);
    return i < list.size() ? list[i] == 0 : layer % 2 == 1;
  });
}

// 2^-(8 i / heads) for head i from 1 on; deeper layers fade less.
std::vector<float> rates(int heads, int layer, int layers) {
  const double deep = 1 - layer / (layers - 1 + 1e-5) + 1e-5;
  std::vector<float> out;
  for (int i = 1; i <= heads; ++i)
    out.push_back(static_cast<float>(std::exp2(-8.0 * i / heads) * deep));
  return out;
}

// "full_attn_alpha_factor", or as the family's own keys have it "layernorm_full_attention_alpha".
float factor(const ConfigReader& c, const std::string& of, const std::string& own,
             const std::string& which) {
  return c.float_or(of + "_" + which + "_factor", c.float_or("layernorm_" + own + "_" + which, 1));
}

void set_factors(const ConfigReader& c, const std::string& of, const std::string& own,
                 Sublayer& sublayer) {
  sublayer.carry = factor(c, of, own, "alpha");
  sublayer.scale = factor(c, of, own, "beta");
  sublayer.carries_input = c.bool_or("postnorm", true);
}

}  // namespace

ModelSpec minimax(const ConfigReader& c) {
  c.ignore("block_size");       // Of the tokens that a kernel takes together.
  c.ignore("shared_moe_mode");  // Of shared experts, of which there are none.
  c.expect_int("shared_intermediate_size", 0);
  ModelSpec m = decoder(c, kDefaults);
  Attention full = gqa(c, kDefaults);
  full.rope.dim = c.int_or("rotary_dim", full.rope.dim, 0);
  full.window = sliding_window(c, 0);
  const Dense expert = gated_ffn(c, "intermediate_size");
  const Moe moe = {.num_experts = c.int_or("num_local_experts", 8, 1),
                   .top_k = c.int_or("num_experts_per_tok", 2, 1),
                   .expert = expert,
                   .router = {.score = Router::kSoftmax, .renormalise = true}};
  Lightning lightning = {.num_heads = full.num_heads, .head_dim = full.head_dim, .act = expert.act};
  for (const bool fades : fading(c)) {
    lightning.rates = rates(lightning.num_heads, layer_count(m), num_layers(c));
    std::vector<Sublayer> layer =
        pre_norm(m.final_norm, fades ? Operation{lightning} : Operation{full}, moe);
    set_factors(c, fades ? "linear_attn" : "full_attn",
                fades ? "linear_attention" : "full_attention", layer[0]);
    set_factors(c, "mlp", "mlp", layer[1]);
    add_layer(m, std::move(layer));
  }
  rename_block_sparse(m);
  m.renames.emplace_back("self_attn.o_proj", "self_attn.out_proj");
  m.renames.emplace_back("self_attn.o_proj", "self_attn.o_proj");
  return m;
}

}  // namespace weir::model::family
