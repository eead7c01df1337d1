// The architectures, and what is written of each beside GgufConfig's common keys: what the
// reference converters write of config.json, turned round.
#include "card/gguf_architecture.h"

#include <algorithm>
#include <array>
#include <optional>

#include "card/gguf_config.h"

namespace weir::card {

namespace {

using Name = std::pair<std::string_view, std::string_view>;
using Variant = GgufArchitecture::Variant;

constexpr std::array kWholeModel = {
    Name{"output", "lm_head"},
    Name{"output_norm", "model.norm"},
    Name{"token_embd", "model.embed_tokens"},
};

constexpr std::array kLayer = {
    Name{"attn_k", "self_attn.k_proj"},
    Name{"attn_k_norm", "self_attn.k_norm"},
    Name{"attn_norm", "input_layernorm"},
    Name{"attn_output", "self_attn.o_proj"},
    Name{"attn_q", "self_attn.q_proj"},
    Name{"attn_q_norm", "self_attn.q_norm"},
    Name{"attn_v", "self_attn.v_proj"},
    Name{"exp_probs_b.bias", "mlp.gate.e_score_correction_bias"},
    Name{"ffn_down", "mlp.down_proj"},
    Name{"ffn_down_exps", "mlp.switch_mlp.down_proj"},
    Name{"ffn_down_shexp", "mlp.shared_expert.down_proj"},
    Name{"ffn_gate", "mlp.gate_proj"},
    Name{"ffn_gate_exps", "mlp.switch_mlp.gate_proj"},
    Name{"ffn_gate_inp", "mlp.gate"},
    Name{"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    Name{"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    Name{"ffn_norm", "post_attention_layernorm"},
    Name{"ffn_up", "mlp.up_proj"},
    Name{"ffn_up_exps", "mlp.switch_mlp.up_proj"},
    Name{"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    Name{"post_attention_norm", "post_attention_layernorm"},
};

// A tensor for each expert: files of before April 2024.
constexpr std::array kMixtralNames = {
    Name{"ffn_down.*", "block_sparse_moe.experts.*.w2"},
    Name{"ffn_down_exps", "block_sparse_moe.switch_mlp.down_proj"},
    Name{"ffn_gate.*", "block_sparse_moe.experts.*.w1"},
    Name{"ffn_gate_exps", "block_sparse_moe.switch_mlp.gate_proj"},
    Name{"ffn_gate_inp", "block_sparse_moe.gate"},
    Name{"ffn_up.*", "block_sparse_moe.experts.*.w3"},
    Name{"ffn_up_exps", "block_sparse_moe.switch_mlp.up_proj"},
};

// What dense decoders have: heads, norms, a feed-forward network.
void dense_keys(GgufConfig& c) {
  c.copy_integer("attention.head_count_kv", "num_key_value_heads");
  c.out().field("head_dim", c.head_dim());
  c.copy_number("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  c.copy_integer("feed_forward_length", "intermediate_size");
}

void bias_key(GgufConfig& c) {
  c.out().field("attention_bias", c.tensor("blk.0.attn_q.bias") != nullptr);
}

void llama_keys(GgufConfig& c) {
  dense_keys(c);
  bias_key(c);
  c.out().field("mlp_bias", c.tensor("blk.0.ffn_gate.bias") != nullptr);
}

void mixtral_keys(GgufConfig& c) {
  dense_keys(c);
  c.expert_keys("num_local_experts");
}

void qwen3_keys(GgufConfig& c) {
  dense_keys(c);
  bias_key(c);
}

// Of layers some may be dense.
void mark_dense_layers(GgufConfig& c) {
  c.out().key("mlp_only_layers").begin_array();
  for (int64_t layer = 0; layer < c.layers(); ++layer)
    if (c.tensor("blk." + std::to_string(layer) + ".ffn_gate_inp.weight") == nullptr)
      c.out().value(layer);
  c.out().end_array();
}

void qwen3moe_keys(GgufConfig& c) {
  qwen3_keys(c);
  c.expert_keys("num_experts");
  c.require_copied("expert_feed_forward_length", "moe_intermediate_size");
  c.out().field("norm_topk_prob", true);
  mark_dense_layers(c);
}

void qwen2moe_keys(GgufConfig& c) {
  dense_keys(c);
  c.expert_keys("num_experts");
  c.require_copied("expert_feed_forward_length", "moe_intermediate_size");
  c.require_copied("expert_shared_feed_forward_length", "shared_expert_intermediate_size");
  c.out().field("norm_topk_prob", false);
  mark_dense_layers(c);
}

// ---- Gated delta nets ----

constexpr std::array kDeltaNames = {
    Name{"attn_gate", "linear_attn.in_proj_z"}, Name{"attn_qkv", "linear_attn.in_proj_qkv"},
    Name{"ssm_a", "linear_attn.decay_rates"},   Name{"ssm_alpha", "linear_attn.in_proj_a"},
    Name{"ssm_ba", "linear_attn.in_proj_ba"},   Name{"ssm_beta", "linear_attn.in_proj_b"},
    Name{"ssm_conv1d", "linear_attn.conv1d"},   Name{"ssm_dt.bias", "linear_attn.dt_bias"},
    Name{"ssm_norm", "linear_attn.norm"},       Name{"ssm_out", "linear_attn.out_proj"},
};

void delta_keys(GgufConfig& c) {
  dense_keys(c);
  bias_key(c);
  const int64_t heads = c.require_integer("ssm.time_step_rank");
  const int64_t inner = c.require_integer("ssm.inner_size");
  if (heads < 1 || inner % heads != 0)
    return c.reject("ssm.inner_size: expected a multiple of ssm.time_step_rank");
  c.out().field("linear_num_value_heads", heads);
  c.out().field("linear_value_head_dim", inner / heads);
  c.require_copied("ssm.group_count", "linear_num_key_heads");
  c.require_copied("ssm.state_size", "linear_key_head_dim");
  c.require_copied("ssm.conv_kernel", "linear_conv_kernel_dim");
  c.copy_integer("full_attention_interval", "full_attention_interval");
  // Where a file has it, this list says what the interval says.
  const std::vector<int64_t> recurrent = c.integers("attention.recurrent_layers");
  if (recurrent.empty()) return;
  if (recurrent.size() < static_cast<size_t>(c.layers()))
    return c.reject("attention.recurrent_layers: expected one for each of " +
                    std::to_string(c.layers()) + " layers, found " +
                    std::to_string(recurrent.size()));
  c.out().key("layer_types").begin_array();
  for (size_t i = 0; i < static_cast<size_t>(c.layers()); ++i)
    c.out().value(recurrent[i] != 0 ? "linear_attention" : "full_attention");
  c.out().end_array();
}

void delta_expert_keys(GgufConfig& c) {
  c.expert_keys("num_experts");
  c.require_copied("expert_feed_forward_length", "moe_intermediate_size");
  c.require_copied("expert_shared_feed_forward_length", "shared_expert_intermediate_size");
}

void qwen3next_keys(GgufConfig& c) {
  delta_keys(c);
  delta_expert_keys(c);
  c.out().field("norm_topk_prob", true);
  if (!c.integer("feed_forward_length"))  // No layer is dense, but the key is asked for.
    c.require_copied("expert_feed_forward_length", "intermediate_size");
}

// Value heads that share a key head are apart: those of all key heads come first, then the next.
void tile_heads(GgufConfig& c) { c.out().field("value_heads_tiled", true); }

void qwen35_keys(GgufConfig& c) {
  delta_keys(c);
  tile_heads(c);
}

void qwen35moe_keys(GgufConfig& c) {
  delta_keys(c);
  delta_expert_keys(c);
  tile_heads(c);
}

// ---- Gemma ----

constexpr std::array kGemmaNames = {
    Name{"ffn_norm", "pre_feedforward_layernorm"},
    Name{"post_attention_norm", "post_attention_layernorm"},
    Name{"post_ffw_norm", "post_feedforward_layernorm"},
};

// The largest of each series scales by the width of the model's heads, not by their own.
void gemma_scale(GgufConfig& c, int64_t layers_of_largest) {
  const float scale = c.number("attention.scale").value_or(0);
  const int64_t heads = std::max<int64_t>(1, c.integer("attention.head_count").value_or(1));
  const int64_t dim = c.layers() == layers_of_largest
                          ? c.require_integer("embedding_length") / heads
                          : c.head_dim();
  if (scale > 0)
    c.out().field("query_pre_attn_scalar", 1 / (scale * scale));
  else
    c.out().field("query_pre_attn_scalar", dim);
}

// Which layers slide: by a list, or all but each so manieth; by the family's own rule otherwise.
void sliding_layers(GgufConfig& c) {
  c.copy_integer("attention.sliding_window", "sliding_window");
  const std::vector<int64_t> pattern = c.integers("attention.sliding_window_pattern");
  if (pattern.empty()) return;
  const auto layers = static_cast<size_t>(c.layers());
  if (pattern.size() > 1 && pattern.size() < layers)
    return c.reject("attention.sliding_window_pattern: expected one for each of " +
                    std::to_string(layers) + " layers, found " + std::to_string(pattern.size()));
  const bool list = pattern.size() > 1;
  c.out().key("layer_types").begin_array();
  for (size_t i = 0; i < layers; ++i) {
    const bool slides =
        list ? pattern[i] != 0 : pattern[0] > 0 && (i + 1) % static_cast<size_t>(pattern[0]) != 0;
    c.out().value(slides ? "sliding_attention" : "full_attention");
  }
  c.out().end_array();
}

void gemma2_keys(GgufConfig& c) {
  dense_keys(c);
  gemma_scale(c, 46);
  sliding_layers(c);
  c.copy_number("attn_logit_softcapping", "attn_logit_softcapping");
  c.copy_number("final_logit_softcapping", "final_logit_softcapping");
}

void gemma3_keys(GgufConfig& c) {
  dense_keys(c);
  gemma_scale(c, 62);
  if (!c.integer("attention.sliding_window")) c.out().field("sliding_window", 0);
  sliding_layers(c);
  c.copy_number("final_logit_softcapping", "final_logit_softcapping");
  c.copy_number("rope.freq_base_swa", "rope_local_base_freq");
}

constexpr std::array kGemma4Names = {
    Name{"ffn_down_exps", "experts.switch_glu.down_proj"},
    Name{"ffn_down_exps.scale", "router.per_expert_scale"},
    Name{"ffn_gate_exps", "experts.switch_glu.gate_proj"},
    Name{"ffn_gate_inp", "router.proj"},
    Name{"ffn_gate_inp.scale", "router.scale"},
    Name{"ffn_gate_up_exps.weight", "experts.gate_up_proj"},
    Name{"ffn_norm", "pre_feedforward_layernorm"},
    Name{"ffn_up_exps", "experts.switch_glu.up_proj"},
    Name{"inp_gate", "per_layer_input_gate"},
    Name{"layer_output_scale.weight", "layer_scalar"},
    Name{"per_layer_model_proj", "model.per_layer_model_projection"},
    Name{"per_layer_proj_norm", "model.per_layer_projection_norm"},
    Name{"per_layer_token_embd", "model.embed_tokens_per_layer"},
    Name{"post_attention_norm", "post_attention_layernorm"},
    Name{"post_ffw_norm", "post_feedforward_layernorm"},
    Name{"post_ffw_norm_1", "post_feedforward_layernorm_1"},
    Name{"post_ffw_norm_2", "post_feedforward_layernorm_2"},
    Name{"post_norm", "post_per_layer_input_norm"},
    Name{"pre_ffw_norm_2", "pre_feedforward_layernorm_2"},
    Name{"proj", "per_layer_projection"},
};

// The first layer that slides, and the first that does not; -1: none.
std::pair<int64_t, int64_t> first_of_each(const std::vector<int64_t>& pattern) {
  std::pair<int64_t, int64_t> first = {-1, -1};
  for (size_t i = pattern.size(); i-- > 0;)
    (pattern[i] != 0 ? first.first : first.second) = static_cast<int64_t>(i);
  return first;
}

// Of pairs whose frequency is divided by something huge, none turns.
void gemma4_rope(GgufConfig& c) {
  constexpr float kStill = 1e20f;
  c.own_rope();
  c.out().key("rope_parameters").begin_object().key("full_attention").begin_object();
  c.copy_number("rope.freq_base", "rope_theta");
  const GgufTensor* divisors = c.tensor("rope_freqs.weight");
  const std::vector<float> factors = divisors ? c.floats(*divisors) : std::vector<float>{};
  const auto turning = std::ranges::count_if(factors, [](float f) { return f < kStill; });
  c.out().field("rope_type", factors.empty() ? "default" : "proportional");
  if (!factors.empty())
    c.out().field("partial_rotary_factor",
                  static_cast<double>(turning) / static_cast<double>(factors.size()));
  c.out().end_object().key("sliding_attention").begin_object();
  c.copy_number("rope.freq_base_swa", "rope_theta");
  c.out().field("rope_type", "default").end_object().end_object();
}

void gemma4_heads(GgufConfig& c) {
  const std::vector<int64_t> pattern = c.integers("attention.sliding_window_pattern");
  const std::vector<int64_t> kv_heads = c.integers("attention.head_count_kv");
  const auto [sliding, full] = first_of_each(pattern);
  const auto heads_of = [&](int64_t layer) {
    const auto index = static_cast<size_t>(std::max<int64_t>(0, layer));
    return kv_heads.empty() ? 0 : kv_heads[kv_heads.size() == 1 ? 0 : index % kv_heads.size()];
  };
  c.out().field("num_key_value_heads", heads_of(sliding));
  c.out().field("num_global_key_value_heads", heads_of(full));
  c.out().field("head_dim", c.integer("attention.key_length_swa").value_or(c.head_dim()));
  c.out().field("global_head_dim", c.head_dim());
  const std::string layer = "blk." + std::to_string(full) + ".";
  c.out().field("attention_k_eq_v", full >= 0 && c.tensor(layer + "attn_k.weight") != nullptr &&
                                        c.tensor(layer + "attn_v.weight") == nullptr);
}

void gemma4_keys(GgufConfig& c) {
  gemma4_heads(c);
  c.copy_number("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  const std::vector<int64_t> widths = c.integers("feed_forward_length");
  if (widths.empty()) return c.reject("feed_forward_length: expected integers, found nothing");
  c.out().field("intermediate_size", widths.front());
  c.out().field("use_double_wide_mlp", widths.back() == 2 * widths.front());
  sliding_layers(c);
  c.copy_integer("attention.shared_kv_layers", "num_kv_shared_layers");
  const int64_t by_token = c.integer("embedding_length_per_layer_input").value_or(0);
  c.out().field("hidden_size_per_layer_input", by_token);
  if (const GgufTensor* table = c.tensor("per_layer_token_embd.weight"))
    c.out().field("vocab_size_per_layer_input", table->shape.front());
  c.copy_number("final_logit_softcapping", "final_logit_softcapping");
  if (const int64_t experts = c.integer("expert_count").value_or(0); experts > 0) {
    c.out().field("enable_moe_block", true).field("num_experts", experts);
    c.require_copied("expert_used_count", "top_k_experts");
    c.require_copied("expert_feed_forward_length", "moe_intermediate_size");
  }
  gemma4_rope(c);
}

// ---- Experts by DeepSeek's keys ----

constexpr std::array kSharedNames = {
    Name{"ffn_down_shexp", "mlp.shared_experts.down_proj"},
    Name{"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    Name{"ffn_up_shexp", "mlp.shared_experts.up_proj"},
};

constexpr std::array kLatentNames = {
    Name{"attn_k_b", "self_attn.embed_q"},
    Name{"attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa"},
    Name{"attn_kv_a_norm", "self_attn.kv_a_layernorm"},
    Name{"attn_kv_b", "self_attn.kv_b_proj"},
    Name{"attn_q_a", "self_attn.q_a_proj"},
    Name{"attn_q_a_norm", "self_attn.q_a_layernorm"},
    Name{"attn_q_b", "self_attn.q_b_proj"},
    Name{"attn_v_b", "self_attn.unembed_out"},
    Name{"ffn_down_shexp", "mlp.shared_experts.down_proj"},
    Name{"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    Name{"ffn_up_shexp", "mlp.shared_experts.up_proj"},
};

void shared_expert_keys(GgufConfig& c) {
  c.expert_keys("n_routed_experts");
  c.require_copied("expert_feed_forward_length", "moe_intermediate_size");
  c.out().field("n_shared_experts", c.integer("expert_shared_count").value_or(0));
  c.out().field("first_k_dense_replace", c.integer("leading_dense_block_count").value_or(0));
  c.out().field("routed_scaling_factor", c.number("expert_weights_scale").value_or(1));
  c.out().field("norm_topk_prob", c.flag("expert_weights_norm").value_or(false));
  c.out().field("n_group", std::max<int64_t>(1, c.integer("expert_group_count").value_or(1)));
  c.out().field("topk_group",
                std::max<int64_t>(1, c.integer("expert_group_used_count").value_or(1)));
}

void latent_keys(GgufConfig& c) {
  const int64_t rope = c.require_integer("rope.dimension_count");
  const auto key = c.integer("attention.key_length_mla");
  const auto value = c.integer("attention.value_length_mla");
  const int64_t value_dim = value ? *value : c.require_integer("attention.value_length");
  c.out().field("qk_rope_head_dim", rope);
  c.out().field("qk_nope_head_dim", key.value_or(c.head_dim()) - rope);
  c.out().field("v_head_dim", value_dim);
  c.require_copied("attention.kv_lora_rank", "kv_lora_rank");
  if (const auto rank = c.integer("attention.q_lora_rank"))
    c.out().field("q_lora_rank", *rank);
  else
    c.out().key("q_lora_rank").null();
  c.copy_number("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  c.copy_integer("feed_forward_length", "intermediate_size");
  c.rope(/*partial=*/false);
}

void deepseek2_keys(GgufConfig& c) {
  latent_keys(c);
  shared_expert_keys(c);
  const bool groups = c.integer("expert_group_count").value_or(1) > 1;
  c.out().field("topk_method", groups ? "group_limited_greedy" : "greedy");
}

void deepseek3_keys(GgufConfig& c) {
  latent_keys(c);
  shared_expert_keys(c);
}

void glm4moe_keys(GgufConfig& c) {
  dense_keys(c);
  bias_key(c);
  shared_expert_keys(c);
  c.out().field("use_qk_norm", c.tensor("blk.0.attn_q_norm.weight") != nullptr);
}

// ---- Others ----

constexpr std::array kPhi3Names = {
    Name{"attn_qkv", "self_attn.qkv_proj"},
    Name{"ffn_up", "mlp.gate_up_proj"},
};

void phi3_keys(GgufConfig& c) {
  dense_keys(c);
  c.copy_integer("attention.sliding_window", "sliding_window");
}

void olmoe_keys(GgufConfig& c) {
  dense_keys(c);
  c.expert_keys("num_experts");
  c.out().field("norm_topk_prob", false);
}

void granite_multipliers(GgufConfig& c) {
  c.copy_number("attention.scale", "attention_multiplier");
  c.copy_number("embedding_scale", "embedding_multiplier");
  c.copy_number("residual_scale", "residual_multiplier");
  c.copy_number("logit_scale", "logits_scaling");
}

void granite_keys(GgufConfig& c) {
  llama_keys(c);
  granite_multipliers(c);
}

constexpr std::array kGraniteMoeNames = {
    Name{"ffn_down_exps", "block_sparse_moe.switch_mlp.down_proj"},
    Name{"ffn_down_shexp", "shared_mlp.output_linear"},
    Name{"ffn_gate_exps", "block_sparse_moe.switch_mlp.gate_proj"},
    Name{"ffn_gate_inp", "block_sparse_moe.router.layer"},
    Name{"ffn_up_exps", "block_sparse_moe.switch_mlp.up_proj"},
};

void granitemoe_keys(GgufConfig& c) {
  dense_keys(c);
  bias_key(c);
  c.expert_keys("num_local_experts");
  c.out().field("shared_intermediate_size",
                c.integer("expert_shared_feed_forward_length").value_or(0));
  granite_multipliers(c);
}

constexpr std::array kGptOssNames = {
    Name{"attn_sinks.weight", "self_attn.sinks"},   Name{"ffn_down_exps", "mlp.experts.down_proj"},
    Name{"ffn_gate_exps", "mlp.experts.gate_proj"}, Name{"ffn_gate_inp", "mlp.router"},
    Name{"ffn_up_exps", "mlp.experts.up_proj"},
};

void gpt_oss_keys(GgufConfig& c) {
  c.copy_integer("attention.head_count_kv", "num_key_value_heads");
  c.out().field("head_dim", c.head_dim());
  c.copy_number("attention.layer_norm_rms_epsilon", "rms_norm_eps");
  c.require_copied("expert_feed_forward_length", "intermediate_size");
  c.expert_keys("num_local_experts");
  bias_key(c);
  sliding_layers(c);
}

constexpr std::array kLfm2Names = {
    Name{"attn_k_norm", "self_attn.k_layernorm"},
    Name{"attn_norm", "operator_norm"},
    Name{"attn_output", "self_attn.out_proj"},
    Name{"attn_q_norm", "self_attn.q_layernorm"},
    Name{"exp_probs_b.bias", "feed_forward.expert_bias"},
    Name{"ffn_down", "feed_forward.w2"},
    Name{"ffn_down_exps", "feed_forward.switch_mlp.w2"},
    Name{"ffn_gate", "feed_forward.w1"},
    Name{"ffn_gate_exps", "feed_forward.switch_mlp.w1"},
    Name{"ffn_gate_inp", "feed_forward.gate"},
    Name{"ffn_norm", "ffn_norm"},
    Name{"ffn_up", "feed_forward.w3"},
    Name{"ffn_up_exps", "feed_forward.switch_mlp.w3"},
    Name{"output_norm", "model.embedding_norm"},
    Name{"shortconv.conv", "conv.conv"},
    Name{"shortconv.in_proj", "conv.in_proj"},
    Name{"shortconv.out_proj", "conv.out_proj"},
    Name{"token_embd_norm", "model.embedding_norm"},
};

void lfm2_keys(GgufConfig& c) {
  c.out().field("head_dim", c.head_dim());
  c.copy_number("attention.layer_norm_rms_epsilon", "norm_eps");
  c.copy_integer("feed_forward_length", "intermediate_size");
  c.require_copied("shortconv.l_cache", "conv_L_cache");
  c.out().field("conv_bias", c.tensor("blk.0.shortconv.in_proj.bias") != nullptr);
  // Layers without keys convolve.
  const std::vector<int64_t> kv_heads = c.integers("attention.head_count_kv");
  int64_t heads = 0;
  for (const int64_t count : kv_heads) heads = std::max(heads, count);
  c.out().field("num_key_value_heads", heads).key("layer_types").begin_array();
  for (size_t i = 0; i < static_cast<size_t>(c.layers()); ++i) {
    const bool convolves = !kv_heads.empty() && kv_heads[std::min(i, kv_heads.size() - 1)] == 0;
    c.out().value(convolves ? "conv" : "full_attention");
  }
  c.out().end_array();
}

void lfm2_dense_keys(GgufConfig& c) {
  lfm2_keys(c);
  c.out().field("block_auto_adjust_ff_dim", false);
}

void lfm2_moe_keys(GgufConfig& c) {
  lfm2_keys(c);
  c.expert_keys("num_experts");
  c.require_copied("expert_feed_forward_length", "moe_intermediate_size");
  c.out().field("num_dense_layers", c.integer("leading_dense_block_count").value_or(0));
  c.copy_number("expert_weights_scale", "routed_scaling_factor");
}

constexpr std::array kArchitectures = {
    GgufArchitecture{.name = "deepseek2",
                     .architecture = "YoutuForCausalLM",
                     .names = kLatentNames,
                     .keys = latent_keys},
    GgufArchitecture{.name = "deepseek2",
                     .architecture = "DeepseekV2ForCausalLM",
                     .variant = Variant::kMixture,
                     .names = kLatentNames,
                     .keys = deepseek2_keys},
    GgufArchitecture{.name = "deepseek2",
                     .architecture = "DeepseekV3ForCausalLM",
                     .variant = Variant::kSigmoid,
                     .names = kLatentNames,
                     .keys = deepseek3_keys},
    GgufArchitecture{.name = "gemma2",
                     .architecture = "Gemma2ForCausalLM",
                     .norms_are_sums = true,
                     .names = kGemmaNames,
                     .keys = gemma2_keys},
    GgufArchitecture{.name = "gemma3",
                     .architecture = "Gemma3ForCausalLM",
                     .norms_are_sums = true,
                     .names = kGemmaNames,
                     .keys = gemma3_keys},
    GgufArchitecture{.name = "gemma4",
                     .architecture = "Gemma4ForCausalLM",
                     .names = kGemma4Names,
                     .keys = gemma4_keys},
    GgufArchitecture{.name = "glm4moe",
                     .architecture = "Glm4MoeForCausalLM",
                     .names = kSharedNames,
                     .keys = glm4moe_keys},
    GgufArchitecture{.name = "gpt-oss",
                     .architecture = "GptOssForCausalLM",
                     .names = kGptOssNames,
                     .keys = gpt_oss_keys},
    GgufArchitecture{.name = "granite",
                     .architecture = "GraniteForCausalLM",
                     .paired_rows = true,
                     .keys = granite_keys},
    GgufArchitecture{.name = "granitemoe",
                     .architecture = "GraniteMoeSharedForCausalLM",
                     .paired_rows = true,
                     .names = kGraniteMoeNames,
                     .keys = granitemoe_keys},
    GgufArchitecture{.name = "lfm2",
                     .architecture = "Lfm2ForCausalLM",
                     .names = kLfm2Names,
                     .keys = lfm2_dense_keys},
    GgufArchitecture{.name = "lfm2moe",
                     .architecture = "Lfm2MoeForCausalLM",
                     .names = kLfm2Names,
                     .keys = lfm2_moe_keys},
    GgufArchitecture{.name = "llama",
                     .architecture = "LlamaForCausalLM",
                     .paired_rows = true,
                     .keys = llama_keys},
    GgufArchitecture{.name = "llama",
                     .architecture = "MixtralForCausalLM",
                     .variant = Variant::kMixture,
                     .paired_rows = true,
                     .names = kMixtralNames,
                     .keys = mixtral_keys},
    GgufArchitecture{.name = "olmoe", .architecture = "OlmoeForCausalLM", .keys = olmoe_keys},
    GgufArchitecture{
        .name = "phi3", .architecture = "Phi3ForCausalLM", .names = kPhi3Names, .keys = phi3_keys},
    GgufArchitecture{.name = "qwen2", .architecture = "Qwen2ForCausalLM", .keys = dense_keys},
    GgufArchitecture{
        .name = "qwen2moe", .architecture = "Qwen2MoeForCausalLM", .keys = qwen2moe_keys},
    GgufArchitecture{.name = "qwen3", .architecture = "Qwen3ForCausalLM", .keys = qwen3_keys},
    GgufArchitecture{.name = "qwen35",
                     .architecture = "Qwen3_5ForCausalLM",
                     .norms_are_sums = true,
                     .names = kDeltaNames,
                     .keys = qwen35_keys},
    GgufArchitecture{.name = "qwen35moe",
                     .architecture = "Qwen3_5MoeForCausalLM",
                     .norms_are_sums = true,
                     .names = kDeltaNames,
                     .keys = qwen35moe_keys},
    GgufArchitecture{
        .name = "qwen3moe", .architecture = "Qwen3MoeForCausalLM", .keys = qwen3moe_keys},
    GgufArchitecture{.name = "qwen3next",
                     .architecture = "Qwen3NextForCausalLM",
                     .norms_are_sums = true,
                     .names = kDeltaNames,
                     .keys = qwen3next_keys},
    GgufArchitecture{.name = "smollm3",
                     .architecture = "SmolLM3ForCausalLM",
                     .paired_rows = true,
                     .keys = llama_keys},
};

bool has_router_bias(std::span<const GgufPart> parts) {
  constexpr auto is_one = [](const GgufTensor& tensor) {
    return tensor.name.ends_with(".exp_probs_b.bias");
  };
  return std::ranges::any_of(parts, [=](const GgufPart& part) {
    return std::ranges::any_of(part.header.tensors, is_one);
  });
}

// What the file says of its experts. Where it does not say how they are scored, a bias beside the
// scores does: only sigmoids have one.
Variant variant_of(std::span<const GgufPart> parts, std::string_view name) {
  constexpr int64_t kSigmoidGate = 2;
  const auto integer = [&](std::string_view key) {
    const GgufValue* value =
        parts[0].header.metadata.find(std::string(name).append(".").append(key));
    return value == nullptr ? 0 : value->integer().value_or(0);
  };
  if (integer("expert_count") == 0) return Variant::kDense;
  const int64_t gate = integer("expert_gating_func");
  const bool sigmoid = gate == 0 ? has_router_bias(parts) : gate == kSigmoidGate;
  return sigmoid ? Variant::kSigmoid : Variant::kMixture;
}

// The published name of `name`; an asterisk in a table stands for the number of an expert.
std::optional<std::string> find_name(GgufArchitecture::Names names, std::string_view name) {
  const auto found = std::ranges::find(names, name, &Name::first);
  if (found != names.end()) return std::string(found->second);
  const size_t dot = name.rfind('.');
  if (dot == name.npos) return std::nullopt;
  const std::string_view number = name.substr(dot + 1);
  const bool digits = std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  if (number.empty() || !digits) return std::nullopt;
  const auto expert =
      std::ranges::find(names, std::string(name.substr(0, dot + 1)) + "*", &Name::first);
  if (expert == names.end()) return std::nullopt;
  std::string published(expert->second);
  return published.replace(published.find('*'), 1, number);
}

std::optional<std::string> renamed(GgufArchitecture::Names names, std::string_view tensor) {
  if (auto whole = find_name(names, tensor)) return whole;
  const size_t dot = tensor.rfind('.');
  if (dot == tensor.npos) return std::nullopt;
  auto module = find_name(names, tensor.substr(0, dot));
  if (!module) return std::nullopt;
  return module->append(tensor.substr(dot));
}

}  // namespace

const GgufArchitecture* gguf_architecture(std::string_view name, std::span<const GgufPart> parts) {
  const Variant variant = variant_of(parts, name);
  const GgufArchitecture* found = nullptr;
  for (const GgufArchitecture& architecture : kArchitectures)
    if (architecture.name == name && (found == nullptr || architecture.variant == variant))
      found = &architecture;
  return found;
}

std::string gguf_architecture_names() {
  std::string names;
  std::string_view last;
  for (const GgufArchitecture& architecture : kArchitectures) {
    if (architecture.name != last)
      names.append(names.empty() ? "" : ", ").append(architecture.name);
    last = architecture.name;
  }
  return names;
}

std::string published_name(const GgufArchitecture& architecture, std::string_view tensor) {
  constexpr std::string_view kBlock = "blk.";
  if (!tensor.starts_with(kBlock)) {
    if (const auto own = renamed(architecture.names, tensor)) return *own;
    return renamed(kWholeModel, tensor).value_or(std::string(tensor));
  }
  const size_t dot = tensor.find('.', kBlock.size());
  if (dot == tensor.npos) return std::string(tensor);
  const std::string_view part = tensor.substr(dot + 1);
  auto name = renamed(architecture.names, part);
  if (!name) name = renamed(kLayer, part);
  if (!name) return std::string(tensor);
  return "model.layers." + std::string(tensor.substr(kBlock.size(), dot + 1 - kBlock.size())) +
         *name;
}

}  // namespace weir::card
