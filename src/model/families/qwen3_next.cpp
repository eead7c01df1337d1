// Qwen3-Next and Qwen3.5: gated delta nets, and after some of them a layer of gated attention.
// Qwen3.5 stores the inputs of delta nets in other modules; it is dense, or has experts in each
// layer.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kQwen3Next = {.vocab_size = 151936,
                                 .num_attention_heads = 16,
                                 .context = 32768,
                                 .num_key_value_heads = 2,
                                 .head_dim = 256,
                                 .partial_rotary_factor = 0.25f,
                                 .norm_offset = 1};
constexpr Defaults with_kv_heads(Defaults defaults, int kv_heads) {
  defaults.vocab_size = 248320;
  defaults.num_key_value_heads = kv_heads;
  return defaults;
}
constexpr Defaults kQwen3_5 = with_kv_heads(kQwen3Next, 4);
constexpr Defaults kQwen3_5Moe = with_kv_heads(kQwen3Next, 2);

Attention gated_attention(const ConfigReader& c, const Defaults& defaults) {
  Attention attn = gqa(c, defaults);
  attn.qk_norm = Attention::kPerHead;
  attn.qk_norm_eps = rms(c, defaults).eps;
  attn.qk_norm_offset = defaults.norm_offset;
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  if (c.bool_or("attn_output_gate", true)) attn.out_gate = Attention::kAfterQuery;
  return attn;
}

GatedDelta gated_delta(const ConfigReader& c, const Defaults& defaults) {
  const std::string gate = c.string_or("output_gate_type", "swish");
  if (gate != "swish" && gate != "silu" && gate != "sigmoid")
    c.reject("output_gate_type: expected swish, silu or sigmoid, found \"" + gate.substr(0, 80) +
             "\"");
  return GatedDelta{.key_heads = c.int_or("linear_num_key_heads", 16),
                    .value_heads = c.int_or("linear_num_value_heads", 32),
                    .key_dim = c.int_or("linear_key_head_dim", 128),
                    .value_dim = c.int_or("linear_value_head_dim", 128),
                    .conv_taps = c.int_or("linear_conv_kernel_dim", 4),
                    .tiled = c.bool_or("value_heads_tiled", false),
                    .sigmoid_gate = gate == "sigmoid",
                    .norm_eps = rms(c, defaults).eps};
}

Moe routed(const ConfigReader& c, int num_experts, int top_k) {
  return Moe{.num_experts = c.int_or("num_experts", num_experts, 1),
             .top_k = c.int_or("num_experts_per_tok", top_k, 1),
             .expert = gated_ffn(c, "moe_intermediate_size"),
             .router = {.score = Router::kSoftmax, .renormalise = true},
             .shared = gated_ffn(c, "shared_expert_intermediate_size"),
             .shared_gate = true};
}

// Delta nets, and attention in every full_attention_interval-th layer; each with its network.
ModelSpec hybrid(const ConfigReader& c, const Defaults& defaults,
                 const std::function<Operation(int)>& network) {
  const int interval = c.int_or("full_attention_interval", 4, 1);
  const std::vector<bool> linear =
      layers_of_type(c, "linear_attention", [=](int layer) { return (layer + 1) % interval != 0; });
  const GatedDelta delta = gated_delta(c, defaults);
  const Attention attention = gated_attention(c, defaults);
  ModelSpec m = decoder(c, defaults);
  for (int i = 0; i < num_layers(c); ++i) {
    const Operation mixer = linear[static_cast<size_t>(i)] ? Operation{delta} : attention;
    add_layer(m, pre_norm(m.final_norm, mixer, network(i)));
  }
  m.convolution = "linear_attn.conv1d";
  m.renames = {{"linear_attn.o_norm", "linear_attn.norm"},
               {"linear_attn.o_proj", "linear_attn.out_proj"}};
  return m;
}

const std::vector<std::string> kQkv = {"linear_attn.q_proj", "linear_attn.k_proj",
                                       "linear_attn.v_proj"};

ModelSpec qwen3_5_hybrid(const ConfigReader& c, const Defaults& defaults,
                         const std::function<Operation(int)>& network) {
  // Of layers that guess further tokens.
  for (const char* key : {"mamba_ssm_dtype", "mlp_only_layers", "mtp_num_hidden_layers",
                          "mtp_use_dedicated_embeddings", "norm_topk_prob"})
    c.ignore(key);
  ModelSpec m = hybrid(c, defaults, network);
  for (Sublayer& sublayer : m.sublayers)
    if (auto* attention = std::get_if<Attention>(&sublayer.op))
      *attention = by_three_positions(c, *attention);
  m.fused = {{"linear_attn.in_proj_qkv", kQkv}};
  for (const char* part : {"a", "b"})
    m.renames.emplace_back(std::string("linear_attn.") + part + "_proj",
                           std::string("linear_attn.in_proj_") + part);
  m.renames.emplace_back("linear_attn.g_proj", "linear_attn.in_proj_z");
  m.expert_tensors = ExpertTensors{"mlp.experts.gate_up_proj", "mlp.experts.down_proj"};
  return m;
}

ModelSpec beside_images(const ConfigReader& c, Describe describe) {
  c.ignore("language_model_only");
  return text_within(c, describe, {"model.language_model.", "language_model.model."},
                     {"model.visual.", "vision_tower.", "visual."});
}

}  // namespace

ModelSpec qwen3_next(const ConfigReader& c) {
  for (const char* key : {"use_sliding_window", "sliding_window", "max_window_layers"})
    c.ignore(key);  // No layer has one.
  Moe moe = routed(c, 512, 10);
  moe.router.renormalise = c.bool_or("norm_topk_prob", true);
  const Dense dense = gated_ffn(c, "intermediate_size");
  const int step = c.int_or("decoder_sparse_step", 1, 1);
  const std::vector<int> listed = c.ints("mlp_only_layers");
  ModelSpec m = hybrid(c, kQwen3Next, [&](int layer) {
    const bool is_dense = (layer + 1) % step != 0 || std::ranges::count(listed, layer) > 0;
    return is_dense ? Operation{dense} : moe;
  });
  // Rows of a key head lie together.
  const int heads = c.int_or("linear_num_key_heads", 16);
  std::vector<std::string> qkvz = kQkv;
  qkvz.emplace_back("linear_attn.g_proj");
  m.fused = {{"linear_attn.in_proj_qkvz", qkvz, heads},
             {"linear_attn.in_proj_qkv", kQkv},  // Of GGUF files, beside the gate's.
             {"linear_attn.in_proj_ba", {"linear_attn.b_proj", "linear_attn.a_proj"}, heads}};
  m.renames.emplace_back("linear_attn.g_proj", "linear_attn.in_proj_z");
  return m;
}

ModelSpec qwen3_5_text(const ConfigReader& c) {
  const Dense ffn = gated_ffn(c, "intermediate_size");
  return qwen3_5_hybrid(c, kQwen3_5, [&](int) { return ffn; });
}

ModelSpec qwen3_5_moe_text(const ConfigReader& c) {
  c.ignore("intermediate_size");  // All layers have experts.
  const Moe moe = routed(c, 256, 8);
  return qwen3_5_hybrid(c, kQwen3_5Moe, [&](int) { return moe; });
}

ModelSpec qwen3_5(const ConfigReader& c) { return beside_images(c, qwen3_5_text); }
ModelSpec qwen3_5_moe(const ConfigReader& c) { return beside_images(c, qwen3_5_moe_text); }

}  // namespace weir::model::family
