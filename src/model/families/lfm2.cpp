// LFM2: short gated convolutions between layers of attention, under names of its own; with experts
// chosen by sigmoid and a learned bias after some dense layers.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.vocab_size = 65536,
                                .num_attention_heads = 32,
                                .context = 128000,
                                .rms_norm_eps = 1e-5f,
                                .rope_theta = 1e6f,
                                .num_key_value_heads = 8,
                                .tied_head = true,
                                .eps_key = "norm_eps"};

// Which layers convolve: by layer_types, or all that full_attn_idxs does not list.
std::vector<bool> convolving(const ConfigReader& c) {
  const std::vector<int> full = c.ints("full_attn_idxs");
  return layers_of_type(c, "conv", [&](int layer) {
    return c.has("full_attn_idxs") && std::ranges::count(full, layer) == 0;
  });
}

// The keys of Liquid's own code say some things once more.
ModelSpec lfm2_decoder(const ConfigReader& c) {
  for (const char* key : {"block_mlp_init_scale", "block_norm_eps", "block_out_init_scale",
                          "block_use_xavier_init", "conv_use_xavier_init", "num_heads"})
    c.ignore(key);
  c.expect_bool("block_use_swiglu", true);
  c.expect_bool("use_pos_enc", true);
  ModelSpec m = decoder(c, kDefaults);
  for (const char* key : {"block_dim", "conv_dim", "conv_dim_out"})
    c.expect_int(key, m.hidden_size);
  if (c.has("tie_embedding")) {
    m.tied_head = c.bool_or("tie_embedding", true);
    m.tied_unless_stored = false;
  }
  m.convolution = "conv.conv";
  m.fused = {{"conv.in_proj", {"conv.before_proj", "conv.after_proj", "conv.x_proj"}}};
  m.renames = {{"norm", "model.embedding_norm"},
               {"self_attn.o_proj", "self_attn.out_proj"},
               {"self_attn.q_norm", "self_attn.q_layernorm"},
               {"self_attn.k_norm", "self_attn.k_layernorm"},
               {"mlp.gate", "feed_forward.gate"},
               {"mlp.gate.e_score_correction_bias", "feed_forward.expert_bias"}};
  // As published, and as MLX's converter writes them.
  for (const auto& [part, stored] :
       {std::pair{"gate_proj", "w1"}, {"up_proj", "w3"}, {"down_proj", "w2"}})
    for (const std::string name : {stored, part}) {
      m.renames.emplace_back(std::string("mlp.") + part, "feed_forward." + name);
      m.renames.emplace_back(std::string("mlp.experts.*.") + part,
                             "feed_forward.experts.*." + name);
      m.renames.emplace_back(std::string("mlp.switch_mlp.") + part,
                             "feed_forward.switch_mlp." + name);
    }
  return m;
}

void add_lfm2_layers(const ConfigReader& c, const std::function<Operation(int)>& ffn,
                     ModelSpec& m) {
  const ShortConv conv = {.channels = m.hidden_size,
                          .taps = c.int_or("conv_L_cache", 3),
                          .bias = c.bool_or("conv_bias", false)};
  Attention attention = gqa(c, kDefaults);
  attention.qk_norm = Attention::kPerHead;
  attention.qk_norm_eps = m.final_norm.eps;
  for (const bool convolves : convolving(c)) {
    std::vector<Sublayer> layer = pre_norm(
        m.final_norm, convolves ? Operation{conv} : Operation{attention}, ffn(layer_count(m)));
    layer[0].pre->module = "operator_norm";
    layer[1].pre->module = "ffn_norm";
    add_layer(m, std::move(layer));
  }
}

// Two thirds of what is said, times a factor, rounded up to a multiple.
int adjusted(const ConfigReader& c, int width) {
  const int multiple = c.int_or("block_multiple_of", 256, 1, 1 << 20);
  const float factor = c.float_or("block_ffn_dim_multiplier", 1);
  if (!c.bool_or("block_auto_adjust_ff_dim", true)) return width;
  if (!(factor > 0 && factor < 1024)) {
    c.reject("block_ffn_dim_multiplier: expected a number above 0 and below 1024, found " +
             std::to_string(factor));
    return width;
  }
  width = 2 * width / 3;
  if (c.is_null("block_ffn_dim_multiplier")) return width;
  width = static_cast<int>(static_cast<double>(factor) * width);
  return (width + multiple - 1) / multiple * multiple;
}

}  // namespace

ModelSpec lfm2(const ConfigReader& c) {
  ModelSpec m = lfm2_decoder(c);
  c.ignore("intermediate_size");  // Where Liquid's key says it.
  Dense ffn = gated_ffn(c, c.has("block_ff_dim") ? "block_ff_dim" : "intermediate_size");
  ffn.width = adjusted(c, ffn.width);
  add_lfm2_layers(
      c, [&](int) { return ffn; }, m);
  return m;
}

ModelSpec lfm2_moe(const ConfigReader& c) {
  ModelSpec m = lfm2_decoder(c);
  const Dense ffn = gated_ffn(c, "intermediate_size");
  const Moe moe = {.num_experts = c.int_or("num_experts", 32, 1),
                   .top_k = c.int_or("num_experts_per_tok", 4, 1),
                   .expert = gated_ffn(c, "moe_intermediate_size"),
                   .router = {.score = Router::kSigmoid,
                              .selection_bias = c.bool_or("use_expert_bias", true),
                              .renormalise = c.bool_or("norm_topk_prob", true),
                              .epsilon = 1e-6f,
                              .scale = c.float_or("routed_scaling_factor", 1)}};
  const int dense = c.int_or("num_dense_layers", 2, 0);
  add_lfm2_layers(
      c, [&](int layer) { return layer < dense ? Operation{ffn} : Operation{moe}; }, m);
  return m;
}

}  // namespace weir::model::family
