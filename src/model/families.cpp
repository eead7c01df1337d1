#include "model/families.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <span>

#include "model/families/family.h"
#include "model/layers/make_layer.h"
#include "model/layers/router.h"
#include "model/layers/streams.h"

namespace weir::model {

namespace {

struct FamilyEntry {
  std::string_view architecture;  // As in config.json's `architectures`.
  family::Describe describe;
};

// Every architecture this server runs. Sorted.
constexpr std::array kFamilies = {
    FamilyEntry{"AfmoeForCausalLM", family::afmoe},
    FamilyEntry{"ApertusForCausalLM", family::apertus},
    FamilyEntry{"ArceeForCausalLM", family::arcee},
    FamilyEntry{"BaichuanM1ForCausalLM", family::baichuan_m1},
    FamilyEntry{"BailingMoeForCausalLM", family::bailing_moe},
    FamilyEntry{"BailingMoeV2ForCausalLM", family::bailing_moe_v2},
    FamilyEntry{"Cohere2ForCausalLM", family::cohere2},
    FamilyEntry{"CohereForCausalLM", family::cohere},
    FamilyEntry{"DeepseekV2ForCausalLM", family::deepseek_v2},
    FamilyEntry{"Dots1ForCausalLM", family::dots1},
    FamilyEntry{"Ernie4_5ForCausalLM", family::ernie4_5},
    FamilyEntry{"Ernie4_5_ForCausalLM", family::ernie4_5},
    FamilyEntry{"Ernie4_5_MoeForCausalLM", family::ernie4_5_moe},
    FamilyEntry{"Exaone4ForCausalLM", family::exaone4},
    FamilyEntry{"ExaoneForCausalLM", family::exaone},
    FamilyEntry{"ExaoneMoEForCausalLM", family::exaone_moe},
    FamilyEntry{"ExaoneMoeForCausalLM", family::exaone_moe},
    FamilyEntry{"GPT2LMHeadModel", family::gpt2},
    FamilyEntry{"GPTBigCodeForCausalLM", family::gpt_bigcode},
    FamilyEntry{"GPTNeoXForCausalLM", family::gpt_neox},
    FamilyEntry{"Gemma2ForCausalLM", family::gemma2},
    FamilyEntry{"Gemma3ForCausalLM", family::gemma3_text},
    FamilyEntry{"Gemma3ForConditionalGeneration", family::gemma3},
    FamilyEntry{"Gemma3nForCausalLM", family::gemma3n_text},
    FamilyEntry{"Gemma3nForConditionalGeneration", family::gemma3n},
    FamilyEntry{"Gemma4ForCausalLM", family::gemma4_text},
    FamilyEntry{"Gemma4ForConditionalGeneration", family::gemma4},
    FamilyEntry{"GemmaForCausalLM", family::gemma},
    FamilyEntry{"Glm4ForCausalLM", family::glm4},
    FamilyEntry{"Glm4MoeForCausalLM", family::glm4_moe},
    FamilyEntry{"GlmForCausalLM", family::glm},
    FamilyEntry{"GptOssForCausalLM", family::gpt_oss},
    FamilyEntry{"GraniteForCausalLM", family::granite},
    FamilyEntry{"GraniteMoeForCausalLM", family::granitemoe},
    FamilyEntry{"GraniteMoeSharedForCausalLM", family::granitemoeshared},
    FamilyEntry{"HeliumForCausalLM", family::helium},
    FamilyEntry{"HunYuanDenseV1ForCausalLM", family::hunyuan_v1_dense},
    FamilyEntry{"HunYuanMoEV1ForCausalLM", family::hunyuan_v1_moe},
    FamilyEntry{"Idefics3ForConditionalGeneration", family::idefics3},
    FamilyEntry{"InternLM2ForCausalLM", family::internlm2},
    FamilyEntry{"InternLM3ForCausalLM", family::internlm3},
    FamilyEntry{"InternVLForConditionalGeneration", family::internvl},
    FamilyEntry{"LilleForCausalLM", family::lille},
    FamilyEntry{"Llama4ForCausalLM", family::llama4_text},
    FamilyEntry{"Llama4ForConditionalGeneration", family::llama4},
    FamilyEntry{"LlamaForCausalLM", family::llama},
    FamilyEntry{"LlavaForConditionalGeneration", family::llava},
    FamilyEntry{"MiMoForCausalLM", family::mimo},
    FamilyEntry{"MiMoV2FlashForCausalLM", family::mimo_v2_flash},
    FamilyEntry{"MiniCPMForCausalLM", family::minicpm},
    FamilyEntry{"MiniMaxM2ForCausalLM", family::minimax_m2},
    FamilyEntry{"Ministral3ForCausalLM", family::ministral3},
    FamilyEntry{"MinistralForCausalLM", family::ministral},
    FamilyEntry{"Mistral3ForConditionalGeneration", family::mistral3},
    FamilyEntry{"MistralForCausalLM", family::mistral},
    FamilyEntry{"MixtralForCausalLM", family::mixtral},
    FamilyEntry{"NanbeigeForCausalLM", family::llama},
    FamilyEntry{"NanoChatForCausalLM", family::nanochat},
    FamilyEntry{"NemotronForCausalLM", family::nemotron},
    FamilyEntry{"Olmo2ForCausalLM", family::olmo2},
    FamilyEntry{"Olmo3ForCausalLM", family::olmo3},
    FamilyEntry{"OlmoForCausalLM", family::olmo},
    FamilyEntry{"OlmoeForCausalLM", family::olmoe},
    FamilyEntry{"OpenELMForCausalLM", family::openelm},
    FamilyEntry{"Phi3ForCausalLM", family::phi3},
    FamilyEntry{"PhiForCausalLM", family::phi},
    FamilyEntry{"PhiMoEForCausalLM", family::phimoe},
    FamilyEntry{"PhimoeForCausalLM", family::phimoe},
    FamilyEntry{"Qwen2ForCausalLM", family::qwen2},
    FamilyEntry{"Qwen2MoeForCausalLM", family::qwen2_moe},
    FamilyEntry{"Qwen3ForCausalLM", family::qwen3},
    FamilyEntry{"Qwen3MoeForCausalLM", family::qwen3_moe},
    FamilyEntry{"Qwen3NextForCausalLM", family::qwen3_next},
    FamilyEntry{"SeedOssForCausalLM", family::seed_oss},
    FamilyEntry{"SmolLM3ForCausalLM", family::smollm3},
    FamilyEntry{"SmolVLMForConditionalGeneration", family::idefics3},
    FamilyEntry{"SolarOpenForCausalLM", family::solar_open},
    FamilyEntry{"StableLmForCausalLM", family::stablelm},
    FamilyEntry{"Starcoder2ForCausalLM", family::starcoder2},
};
static_assert(std::is_sorted(kFamilies.begin(), kFamilies.end(),
                             [](const FamilyEntry& a, const FamilyEntry& b) {
                               return a.architecture < b.architecture;
                             }));

const FamilyEntry* find_family(std::string_view architecture) {
  for (const FamilyEntry& entry : kFamilies)
    if (entry.architecture == architecture) return &entry;
  return nullptr;
}

Result<void> wrong(int layer, const std::string& what) {
  return fail(ErrorCode::kConfig, "config.json: layer " + std::to_string(layer) + ": " + what);
}

struct Number {
  const char* key;  // In config.json; the number may be derived from it.
  float value;
};

// Whatever multiplies or divides.
Result<void> check_positive(int layer, std::initializer_list<Number> numbers) {
  for (const Number& n : numbers)
    if (!(n.value > 0 && std::isfinite(n.value)))
      return wrong(layer, std::string("expected a positive and finite number by ") + n.key +
                              ", found " + std::to_string(n.value));
  return {};
}

// What is added, and caps of which 0 is none.
Result<void> check_not_negative(int layer, std::initializer_list<Number> numbers) {
  for (const Number& n : numbers)
    if (!(n.value >= 0 && std::isfinite(n.value)))
      return wrong(layer, std::string("expected a finite number of at least 0 by ") + n.key +
                              ", found " + std::to_string(n.value));
  return {};
}

Result<void> check_rope(const Rope& r, int layer) {
  const auto half = static_cast<size_t>(r.dim / 2);
  if (r.scaling == Rope::kLongRope &&
      (r.short_factor.size() != half || r.long_factor.size() != half))
    return wrong(layer, "expected short_factor and long_factor of " + std::to_string(half) +
                            " numbers, found " + std::to_string(r.short_factor.size()) + " and " +
                            std::to_string(r.long_factor.size()));
  const int pairs = r.sections[0] + r.sections[1] + r.sections[2];
  if (std::ranges::any_of(r.sections, [](int section) { return section < 0; }) ||
      (pairs != 0 && pairs != r.dim / 2))
    return wrong(layer, "expected sections of " + std::to_string(half) +
                            " rotary pairs in all, found " + std::to_string(pairs));
  for (const float factor : r.short_factor)
    WEIR_TRY(check_positive(layer, {{"short_factor", factor}}));
  for (const float factor : r.long_factor)
    WEIR_TRY(check_positive(layer, {{"long_factor", factor}}));
  if (r.still_pairs < 0 || r.still_pairs > r.dim / 2)
    return wrong(layer, "expected a partial_rotary_factor from 0 to 1, found one by which " +
                            std::to_string(r.still_pairs) + " pairs do not turn");
  if (r.dim > 0 && !(r.theta > 1 && std::isfinite(r.theta)))
    return wrong(layer, "expected a finite rope_theta above 1, found " + std::to_string(r.theta));
  WEIR_TRY(check_positive(layer, {{"factor", r.factor}, {"attention_factor", r.attention_factor}}));
  WEIR_TRY(check_not_negative(layer, {{"long_mscale", r.long_attention_factor}}));
  if (r.scaling > Rope::kLinear && !(r.original_context >= 1 && std::isfinite(r.original_context)))
    return wrong(layer, "expected original_max_position_embeddings of at least 1, found " +
                            std::to_string(r.original_context));
  if (r.scaling == Rope::kDynamic && r.dim <= 2)  // Its exponent is dim / (dim - 2).
    return wrong(layer, "expected more than 2 rotary dimensions with rope_type dynamic, found " +
                            std::to_string(r.dim));
  if (r.scaling == Rope::kLlama3) {
    WEIR_TRY(check_positive(
        layer, {{"low_freq_factor", r.low_freq_factor}, {"high_freq_factor", r.high_freq_factor}}));
    if (r.high_freq_factor <= r.low_freq_factor)
      return wrong(layer, "expected a high_freq_factor above the low_freq_factor " +
                              std::to_string(r.low_freq_factor) + ", found " +
                              std::to_string(r.high_freq_factor));
  }
  if (r.scaling == Rope::kYarn)
    return check_positive(layer, {{"beta_fast", r.beta_fast}, {"beta_slow", r.beta_slow}});
  return {};
}

constexpr int kTapsMax = 16;  // Of convolutions.

Result<void> check(const Attention& a, int layer) {
  if (a.num_heads < 1 || a.num_kv_heads < 1 || a.num_heads % a.num_kv_heads != 0)
    return wrong(layer, "expected query heads to be a multiple of key-value heads, found " +
                            std::to_string(a.num_heads) + " and " + std::to_string(a.num_kv_heads));
  if (a.head_dim < 1 || a.head_dim > 1024)
    return wrong(layer, "expected a head_dim from 1 to 1024, found " + std::to_string(a.head_dim));
  if (a.v_head_dim < 0 || a.v_head_dim > 1024)
    return wrong(layer,
                 "expected a v_head_dim from 1 to 1024, found " + std::to_string(a.v_head_dim));
  const Rope& r = a.rope;
  if (r.dim < 0 || r.dim > a.head_dim || r.dim % 2 != 0)
    return wrong(layer, "expected an even number of rotary dimensions up to " +
                            std::to_string(a.head_dim) + ", found " + std::to_string(r.dim));
  WEIR_TRY(check_rope(r, layer));
  if (a.chunks && a.window < 1)
    return wrong(layer, "expected chunks of at least 1 token, found " + std::to_string(a.window));
  if (a.position_step < 1 || a.position_shift < 0)
    return wrong(layer,
                 "expected original_max_position_embeddings or floor_scale of at least 1, "
                 "found " +
                     std::to_string(a.position_step));
  if (a.conv_taps != 0 && (a.conv_taps < 2 || a.conv_taps > kTapsMax))
    return wrong(layer, "expected a conv_window from 2 to " + std::to_string(kTapsMax) +
                            ", found " + std::to_string(a.conv_taps));
  WEIR_TRY(check_not_negative(layer, {{"rms_norm_eps", a.qk_norm_eps},
                                      {"attn_logit_softcapping", a.logit_softcap},
                                      {"clip_qkv", a.qkv_limit},
                                      {"llama_4_scaling_beta or attn_scale", a.position_beta}}));
  return check_positive(layer, {{"query_pre_attn_scalar or attention_multiplier", a.scale}});
}

Result<void> check(const GatedDelta& d, int layer) {
  constexpr int kHeadsMax = 4096, kDimMax = 1024;
  if (d.key_heads < 1 || d.value_heads > kHeadsMax || d.value_heads < 1 ||
      d.value_heads % d.key_heads != 0)
    return wrong(layer, "expected at most " + std::to_string(kHeadsMax) +
                            " linear_num_value_heads, a multiple of linear_num_key_heads; found " +
                            std::to_string(d.value_heads) + " and " + std::to_string(d.key_heads));
  if (std::min(d.key_dim, d.value_dim) < 1 || std::max(d.key_dim, d.value_dim) > kDimMax)
    return wrong(layer, "expected linear_key_head_dim and linear_value_head_dim from 1 to " +
                            std::to_string(kDimMax) + ", found " + std::to_string(d.key_dim) +
                            " and " + std::to_string(d.value_dim));
  if (d.conv_taps < 2 || d.conv_taps > kTapsMax)
    return wrong(layer, "expected a linear_conv_kernel_dim from 2 to " + std::to_string(kTapsMax) +
                            ", found " + std::to_string(d.conv_taps));
  return check_not_negative(layer, {{"rms_norm_eps", d.norm_eps}});
}

Result<void> check_size(int layer, const char* key, int found, int least, int most) {
  if (found >= least && found <= most) return {};
  return wrong(layer, std::string("expected a ") + key + " from " + std::to_string(least) + " to " +
                          std::to_string(most) + ", found " + std::to_string(found));
}

Result<void> check(const LatentAttention& a, int layer) {
  constexpr int kHeadsMax = 1024, kHeadMax = 1024, kRankMax = 1 << 16;
  WEIR_TRY(check_size(layer, "num_attention_heads", a.num_heads, 1, kHeadsMax));
  WEIR_TRY(check_size(layer, "q_lora_rank", a.q_rank, 0, kRankMax));
  WEIR_TRY(check_size(layer, "qk_nope_head_dim", a.nope_dim, 1, kHeadMax));
  WEIR_TRY(check_size(layer, "qk_rope_head_dim", a.rope_dim, 0, kernels::kValuesInKeysMax - 1));
  WEIR_TRY(check_size(layer, "kv_lora_rank", a.kv_rank, 1, kernels::kValuesInKeysMax - a.rope_dim));
  WEIR_TRY(check_size(layer, "v_head_dim", a.v_head_dim, 1, kHeadMax));
  if (a.rope.dim < 0 || a.rope.dim > a.rope_dim || a.rope.dim % 2 != 0)
    return wrong(layer, "expected an even number of rotary dimensions up to " +
                            std::to_string(a.rope_dim) + ", found " + std::to_string(a.rope.dim));
  WEIR_TRY(check_rope(a.rope, layer));
  WEIR_TRY(check_not_negative(layer, {{"rms_norm_eps", a.norm_eps}}));
  return check_positive(layer, {{"qk_nope_head_dim and mscale_all_dim", a.scale}});
}

Result<void> check(const Dense& dense, int layer) {
  return check_not_negative(layer, {{"swiglu_limit", dense.limit}});
}

Result<void> check_router(const Router& r, const Moe& moe, int layer) {
  if (r.groups < 1 || r.groups > kRouterGroupsMax || moe.num_experts % r.groups != 0)
    return wrong(layer, "expected 1 to " + std::to_string(kRouterGroupsMax) +
                            " groups (n_group) that share " + std::to_string(moe.num_experts) +
                            " experts evenly, found " + std::to_string(r.groups));
  if (r.groups_kept < 1 || r.groups_kept > r.groups)
    return wrong(layer, "expected a topk_group from 1 to " + std::to_string(r.groups) + ", found " +
                            std::to_string(r.groups_kept));
  if (const int left = moe.num_experts / r.groups * r.groups_kept; moe.top_k > left)
    return wrong(layer, "expected at most " + std::to_string(left) +
                            " experts per token, which topk_group leaves; found " +
                            std::to_string(moe.top_k));
  WEIR_TRY(check_positive(layer, {{"the router's scale of logits", r.logit_scale}}));
  WEIR_TRY(check_not_negative(layer, {{"rms_norm_eps", r.norm_eps},
                                      {"the router's epsilon", r.epsilon},
                                      {"moe_norm_min", r.least_sum},
                                      {"router_jitter_noise", r.jitter}}));
  return check_positive(layer, {{"routed_scaling_factor", r.scale}});
}

Result<void> check(const Moe& moe, int layer) {
  constexpr int kExpertsMax = 4096;  // Eight times the most published.
  if (moe.num_experts > kExpertsMax)
    return wrong(layer, "expected at most " + std::to_string(kExpertsMax) + " experts, found " +
                            std::to_string(moe.num_experts));
  if (moe.num_experts < 1 || moe.top_k < 1 || moe.top_k > moe.num_experts)
    return wrong(layer, "expected 1 to " + std::to_string(moe.num_experts) +
                            " experts per token, found " + std::to_string(moe.top_k));
  if (moe.weighs_input && moe.expert.bias)
    return wrong(layer, "expected experts without biases where inputs are weighted");
  WEIR_TRY(check(moe.expert, layer));
  return check_router(moe.router, moe, layer);
}

// What is before and after the operation; `before`: the sublayers before this one.
Result<void> check_placement(const Sublayer& sublayer, std::span<const Sublayer> before) {
  const int layer = sublayer.stored_layer;
  if (sublayer.input == Sublayer::kSameAsBefore && (before.empty() || sublayer.pre))
    return wrong(layer, "expected a sublayer before it whose input it reads, and no norm");
  if (!before.empty() && before.back().late && sublayer.input != Sublayer::kResidual)
    return wrong(layer, "expected the residual stream to be read while what comes before it waits");
  if (const auto of = static_cast<size_t>(sublayer.memory_of); sublayer.memory_of >= 0) {
    if (of >= before.size() || need_of(before[of]) != need_of(sublayer.op))
      return wrong(layer,
                   "expected a sublayer before it with keys and values like its own, found "
                   "sublayer " +
                       std::to_string(of));
  }
  const bool by_rows = sublayer.held || sublayer.joint || sublayer.plus_input ||
                       sublayer.corrects || sublayer.to_others || sublayer.stream_factor != 1 ||
                       !sublayer.stream_scale.empty();
  if (by_rows && !sublayer.post)
    return wrong(layer, "expected a norm after what is held, joined or scaled, found none");
  if (sublayer.joint.has_value() != (!before.empty() && before.back().held))
    return wrong(layer, "expected what is held to join what the next sublayer gives");
  for (const std::optional<Norm>* norm : {&sublayer.pre, &sublayer.post, &sublayer.joint})
    if (*norm) WEIR_TRY(check_not_negative(layer, {{"rms_norm_eps", (*norm)->eps}}));
  return check_positive(layer, {{"residual_multiplier", sublayer.scale}});
}

}  // namespace

bool family_known(std::string_view architecture) { return find_family(architecture) != nullptr; }

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> names;
  for (const FamilyEntry& entry : kFamilies) names.push_back(entry.architecture);
  return names;
}

Result<void> check_spec(const ModelSpec& spec) {
  const int last = std::max(layer_count(spec) - 1, 0);
  WEIR_TRY(check_not_negative(last, {{"rms_norm_eps", spec.final_norm.eps},
                                     {"final_logit_softcapping", spec.logit_softcap}}));
  WEIR_TRY(check_positive(
      last, {{"embedding_multiplier", spec.embed_scale}, {"logits_scaling", spec.logit_scale}}));
  if (!spec.sublayers.empty() && spec.sublayers.back().held)
    return wrong(last, "expected a sublayer after one whose output is held, found none");
  if (const auto& streams = spec.streams) {
    WEIR_TRY(check_size(last, "altup_num_inputs", streams->count, 2, kStreamsMax));
    WEIR_TRY(check_size(last, "altup_active_idx", streams->active, 0, streams->count - 1));
  }
  if (const auto& inputs = spec.token_inputs)
    WEIR_TRY(check_size(last, "hidden_size_per_layer_input", inputs->width, 1,
                        kernels::kMaxLayerK / std::max(layer_count(spec), 1)));
  for (size_t i = 0; i < spec.sublayers.size(); ++i) {
    const Sublayer& sublayer = spec.sublayers[i];
    WEIR_TRY(check_placement(sublayer, std::span(spec.sublayers).first(i)));
    if ((sublayer.predicts || sublayer.corrects || sublayer.to_others) && !spec.streams)
      return wrong(sublayer.stored_layer, "expected several streams, found none");
    if (const auto* dense = std::get_if<Dense>(&sublayer.op); dense && dense->up_by_token)
      if (!spec.token_inputs || spec.token_inputs->width != dense->width)
        return wrong(sublayer.stored_layer, "expected what tokens bring to be as wide as its gate");
    WEIR_TRY(
        std::visit([&](const auto& op) { return check(op, sublayer.stored_layer); }, sublayer.op));
  }
  return {};
}

Result<ModelSpec> spec_from_config(JsonValue config) {
  if (!config.is_object())
    return fail(ErrorCode::kConfig,
                std::string("config.json: expected an object, found ") + json_type_name(config));
  std::string_view architecture;
  if (config["architectures"].at(0).get(architecture) != simdjson::SUCCESS)
    return fail(ErrorCode::kConfig,
                "config.json: 'architectures': expected a list with a name, found none");
  const FamilyEntry* family = find_family(architecture);
  if (family == nullptr) {
    std::string names;
    for (const std::string_view name : known_architectures())
      names += (names.empty() ? "" : ", ") + std::string(name);
    return fail(ErrorCode::kUnsupported,
                "config.json: 'architectures': expected one of " + names + "; found " +
                    std::string(architecture.substr(0, 80)) +
                    " (if it is one of these under another name: --config-override "
                    "'architectures=[\"NAME\"]')");
  }
  const card::ConfigReader reader(config);
  ModelSpec spec = family->describe(reader);
  spec.family = architecture;
  WEIR_TRY(reader.finish());
  WEIR_TRY(check_spec(spec));
  return spec;
}

}  // namespace weir::model
