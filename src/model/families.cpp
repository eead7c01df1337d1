#include "model/families.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "base/near_name.h"
#include "model/families/family.h"
#include "model/layers/make_layer.h"
#include "model/layers/streams.h"
#include "model/operations/check_sizes.h"

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
    FamilyEntry{"BitNetForCausalLM", family::bitnet},
    FamilyEntry{"Cohere2ForCausalLM", family::cohere2},
    FamilyEntry{"CohereForCausalLM", family::cohere},
    FamilyEntry{"DeepseekV2ForCausalLM", family::deepseek_v2},
    FamilyEntry{"DeepseekV32ForCausalLM", family::deepseek_v32},
    FamilyEntry{"DeepseekV3ForCausalLM", family::deepseek_v3},
    FamilyEntry{"DeepseekV4ForCausalLM", family::deepseek_v4},
    FamilyEntry{"Dots1ForCausalLM", family::dots1},
    FamilyEntry{"Ernie4_5ForCausalLM", family::ernie4_5},
    FamilyEntry{"Ernie4_5_ForCausalLM", family::ernie4_5},
    FamilyEntry{"Ernie4_5_MoeForCausalLM", family::ernie4_5_moe},
    FamilyEntry{"Exaone4ForCausalLM", family::exaone4},
    FamilyEntry{"ExaoneForCausalLM", family::exaone},
    FamilyEntry{"ExaoneMoEForCausalLM", family::exaone_moe},
    FamilyEntry{"ExaoneMoeForCausalLM", family::exaone_moe},
    FamilyEntry{"FalconH1ForCausalLM", family::falcon_h1},
    FamilyEntry{"FalconMambaForCausalLM", family::falcon_mamba},
    FamilyEntry{"FastVlmForConditionalGeneration", family::fastvlm},
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
    FamilyEntry{"Glm4MoeLiteForCausalLM", family::glm4_moe_lite},
    FamilyEntry{"Glm4vForConditionalGeneration", family::glm4v},
    FamilyEntry{"GlmForCausalLM", family::glm},
    FamilyEntry{"GlmMoeDsaForCausalLM", family::glm_moe_dsa},
    FamilyEntry{"GlmOcrForConditionalGeneration", family::glm_ocr},
    FamilyEntry{"GptOssForCausalLM", family::gpt_oss},
    FamilyEntry{"GraniteForCausalLM", family::granite},
    FamilyEntry{"GraniteMoeForCausalLM", family::granitemoe},
    FamilyEntry{"GraniteMoeHybridForCausalLM", family::granitemoehybrid},
    FamilyEntry{"GraniteMoeSharedForCausalLM", family::granitemoeshared},
    FamilyEntry{"HeliumForCausalLM", family::helium},
    FamilyEntry{"HunYuanDenseV1ForCausalLM", family::hunyuan_v1_dense},
    FamilyEntry{"HunYuanMoEV1ForCausalLM", family::hunyuan_v1_moe},
    FamilyEntry{"Idefics3ForConditionalGeneration", family::idefics3},
    FamilyEntry{"InternLM2ForCausalLM", family::internlm2},
    FamilyEntry{"InternLM3ForCausalLM", family::internlm3},
    FamilyEntry{"InternVLChatModel", family::internvl_chat},
    FamilyEntry{"InternVLForConditionalGeneration", family::internvl},
    FamilyEntry{"JambaForCausalLM", family::jamba},
    FamilyEntry{"KimiK25ForConditionalGeneration", family::kimi_k25},
    FamilyEntry{"KimiLinearForCausalLM", family::kimi_linear},
    FamilyEntry{"Lfm2ForCausalLM", family::lfm2},
    FamilyEntry{"Lfm2MoeForCausalLM", family::lfm2_moe},
    FamilyEntry{"Lfm2VlForConditionalGeneration", family::lfm2_vl},
    FamilyEntry{"LilleForCausalLM", family::lille},
    FamilyEntry{"Llama4ForCausalLM", family::llama4_text},
    FamilyEntry{"Llama4ForConditionalGeneration", family::llama4},
    FamilyEntry{"LlamaForCausalLM", family::llama},
    FamilyEntry{"LlavaForConditionalGeneration", family::llava},
    FamilyEntry{"LlavaQwen2ForCausalLM", family::fastvlm},
    FamilyEntry{"LongcatFlashForCausalLM", family::longcat_flash},
    FamilyEntry{"Mamba2ForCausalLM", family::mamba2},
    FamilyEntry{"MambaForCausalLM", family::mamba},
    FamilyEntry{"MiMoForCausalLM", family::mimo},
    FamilyEntry{"MiMoV2FlashForCausalLM", family::mimo_v2_flash},
    FamilyEntry{"MiniCPM3ForCausalLM", family::minicpm3},
    FamilyEntry{"MiniCPMForCausalLM", family::minicpm},
    FamilyEntry{"MiniMaxForCausalLM", family::minimax},
    FamilyEntry{"MiniMaxM1ForCausalLM", family::minimax},
    FamilyEntry{"MiniMaxM2ForCausalLM", family::minimax_m2},
    FamilyEntry{"MiniMaxText01ForCausalLM", family::minimax},
    FamilyEntry{"Ministral3ForCausalLM", family::ministral3},
    FamilyEntry{"MinistralForCausalLM", family::ministral},
    FamilyEntry{"Mistral3ForConditionalGeneration", family::mistral3},
    FamilyEntry{"Mistral4ForCausalLM", family::mistral4},
    FamilyEntry{"MistralForCausalLM", family::mistral},
    FamilyEntry{"MixtralForCausalLM", family::mixtral},
    FamilyEntry{"NanbeigeForCausalLM", family::llama},
    FamilyEntry{"NanoChatForCausalLM", family::nanochat},
    FamilyEntry{"NemotronForCausalLM", family::nemotron},
    FamilyEntry{"NemotronHForCausalLM", family::nemotron_h},
    FamilyEntry{"Olmo2ForCausalLM", family::olmo2},
    FamilyEntry{"Olmo3ForCausalLM", family::olmo3},
    FamilyEntry{"OlmoForCausalLM", family::olmo},
    FamilyEntry{"OlmoHybridForCausalLM", family::olmo_hybrid},
    FamilyEntry{"OlmoeForCausalLM", family::olmoe},
    FamilyEntry{"OpenELMForCausalLM", family::openelm},
    FamilyEntry{"PaliGemmaForConditionalGeneration", family::paligemma},
    FamilyEntry{"Phi3ForCausalLM", family::phi3},
    FamilyEntry{"PhiForCausalLM", family::phi},
    FamilyEntry{"PhiMoEForCausalLM", family::phimoe},
    FamilyEntry{"PhimoeForCausalLM", family::phimoe},
    FamilyEntry{"Qwen2AudioForConditionalGeneration", family::internvl},
    FamilyEntry{"Qwen2ForCausalLM", family::qwen2},
    FamilyEntry{"Qwen2MoeForCausalLM", family::qwen2_moe},
    FamilyEntry{"Qwen2VLForConditionalGeneration", family::qwen2_vl},
    FamilyEntry{"Qwen2_5_VLForConditionalGeneration", family::qwen2_vl},
    FamilyEntry{"Qwen3ForCausalLM", family::qwen3},
    FamilyEntry{"Qwen3MoeForCausalLM", family::qwen3_moe},
    FamilyEntry{"Qwen3NextForCausalLM", family::qwen3_next},
    FamilyEntry{"Qwen3VLForConditionalGeneration", family::qwen3_vl},
    FamilyEntry{"Qwen3VLMoeForConditionalGeneration", family::qwen3_vl_moe},
    FamilyEntry{"Qwen3_5ForCausalLM", family::qwen3_5_text},
    FamilyEntry{"Qwen3_5ForConditionalGeneration", family::qwen3_5},
    FamilyEntry{"Qwen3_5MoeForCausalLM", family::qwen3_5_moe_text},
    FamilyEntry{"Qwen3_5MoeForConditionalGeneration", family::qwen3_5_moe},
    FamilyEntry{"SeedOssForCausalLM", family::seed_oss},
    FamilyEntry{"SmolLM3ForCausalLM", family::smollm3},
    FamilyEntry{"SmolVLMForConditionalGeneration", family::idefics3},
    FamilyEntry{"SolarOpenForCausalLM", family::solar_open},
    FamilyEntry{"StableLmForCausalLM", family::stablelm},
    FamilyEntry{"Starcoder2ForCausalLM", family::starcoder2},
    FamilyEntry{"WhisperForConditionalGeneration", family::whisper},
    FamilyEntry{"YoutuForCausalLM", family::youtu},
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

// One output at a time waits, until a sublayer takes it; that of `sublayer` comes after.
Result<void> check_held(const Sublayer& sublayer, std::span<const Sublayer> before) {
  bool waits = false;
  for (const Sublayer& one : before) waits = one.held || (waits && !one.joint && !one.adds_held);
  const bool joins = sublayer.joint.has_value();
  if (joins && (before.empty() || !before.back().held))
    return wrong(sublayer.stored_layer, "expected what is joined to be held just before");
  if ((sublayer.adds_held && (joins || !waits)) ||
      (sublayer.held && (waits || joins || sublayer.adds_held)))
    return wrong(sublayer.stored_layer, "expected what is held to be taken once");
  return {};
}

// What is before and after the operation; `before`: the sublayers before this one.
Result<void> check_placement(const Sublayer& sublayer, std::span<const Sublayer> before) {
  const int layer = sublayer.stored_layer;
  if (sublayer.input == Sublayer::kSameAsBefore && (before.empty() || sublayer.pre))
    return wrong(layer, "expected a sublayer before it whose input it reads, and no norm");
  if (!before.empty() && before.back().late && sublayer.input != Sublayer::kResidual)
    return wrong(layer, "expected the residual stream to be read while what comes before it waits");
  if (const auto of = static_cast<size_t>(sublayer.memory_of); sublayer.memory_of >= 0) {
    if (of >= before.size() || needs_of(before[of]) != needs_of(sublayer.op))
      return wrong(layer,
                   "expected a sublayer before it with keys and values like its own, found "
                   "sublayer " +
                       std::to_string(of));
  }
  const bool by_rows = sublayer.joint || sublayer.plus_input || sublayer.corrects ||
                       sublayer.to_others || sublayer.stream_factor != 1 ||
                       !sublayer.stream_scale.empty();
  if (by_rows && !sublayer.post)
    return wrong(layer, "expected a norm after what is joined or scaled, found none");
  WEIR_TRY(check_held(sublayer, before));
  if (sublayer.carries_input && sublayer.late)
    return wrong(layer, "expected what carries its input to be added at once");
  for (const std::optional<Norm>* norm : {&sublayer.pre, &sublayer.post, &sublayer.joint})
    if (*norm) WEIR_TRY(check_not_negative(layer, {{"rms_norm_eps", (*norm)->eps}}));
  return check_positive(layer, {{"residual_multiplier or a beta factor", sublayer.scale},
                                {"an alpha factor", sublayer.carry}});
}

}  // namespace

bool family_known(std::string_view architecture) { return find_family(architecture) != nullptr; }

std::vector<std::string_view> known_architectures() {
  std::vector<std::string_view> names;
  for (const FamilyEntry& entry : kFamilies) names.push_back(entry.architecture);
  return names;
}

namespace {

// It reads the residual stream, and what it gives is added to that as it is.
bool is_plain(const Sublayer& s) {
  return s.input == Sublayer::kResidual && s.scale == 1 && s.carry == 1 && !s.carries_input &&
         !s.held && !s.joint && !s.adds_held && !s.plus_input && !s.predicts && !s.corrects &&
         !s.to_others && s.stream_factor == 1 && s.stream_scale.empty() && !s.late;
}

}  // namespace

Result<void> check_spec(const ModelSpec& spec) {
  const int last = std::max(layer_count(spec) - 1, 0);
  WEIR_TRY(check_not_negative(last, {{"rms_norm_eps", spec.final_norm.eps},
                                     {"final_logit_softcapping", spec.logit_softcap}}));
  WEIR_TRY(check_positive(
      last, {{"embedding_multiplier", spec.embed_scale}, {"logits_scaling", spec.logit_scale}}));
  const auto count = [&](auto&& of) { return std::ranges::count_if(spec.sublayers, of); };
  if (count([](const Sublayer& s) { return s.held; }) !=
      count([](const Sublayer& s) { return s.joint || s.adds_held; }))
    return wrong(last, "expected a sublayer after one whose output is held, found none");
  if (const auto& streams = spec.streams) {
    WEIR_TRY(check_size(last, "altup_num_inputs", streams->count, 2, kStreamsMax));
    WEIR_TRY(check_size(last, "altup_active_idx", streams->active, 0, streams->count - 1));
  }
  if (spec.streams && spec.hyper)
    return wrong(last,
                 "expected streams that are predicted and corrected (altup_num_inputs) or "
                 "hyper-connections (hc_mult), found both");
  if (const auto& hyper = spec.hyper) {
    constexpr int kRoundsMax = 1000;  // 50 times the most published.
    WEIR_TRY(check_size(last, "hc_mult", hyper->streams, 2, kHyperStreamsMax));
    WEIR_TRY(check_size(last, "hc_sinkhorn_iters", hyper->sinkhorn_rounds, 1, kRoundsMax));
    WEIR_TRY(check_size(last, "hc_mult * hidden_size", hyper->streams * spec.hidden_size, 1,
                        kernels::kMaxLayerK));
    WEIR_TRY(check_positive(last, {{"hc_eps", hyper->eps}}));
    WEIR_TRY(check_not_negative(last, {{"rms_norm_eps", hyper->norm_eps}}));
  }
  if (const auto& inputs = spec.token_inputs)
    WEIR_TRY(check_size(last, "hidden_size_per_layer_input", inputs->width, 1,
                        kernels::kMaxLayerK / std::max(layer_count(spec), 1)));
  for (size_t i = 0; i < spec.sublayers.size(); ++i) {
    const Sublayer& sublayer = spec.sublayers[i];
    WEIR_TRY(check_placement(sublayer, std::span(spec.sublayers).first(i)));
    if ((sublayer.predicts || sublayer.corrects || sublayer.to_others) && !spec.streams)
      return wrong(sublayer.stored_layer, "expected several streams, found none");
    if (sublayer.hyper.empty() == spec.hyper.has_value())
      return wrong(sublayer.stored_layer, "expected hyper-connections of all sublayers or of none");
    if (!sublayer.hyper.empty() && !is_plain(sublayer))
      return wrong(sublayer.stored_layer,
                   "expected hyper-connections alone on the way to and from the streams");
    if (const auto* dense = std::get_if<Dense>(&sublayer.op); dense && dense->up_by_token)
      if (!spec.token_inputs || spec.token_inputs->width != dense->width)
        return wrong(sublayer.stored_layer, "expected what tokens bring to be as wide as its gate");
    if (const auto* moe = std::get_if<Moe>(&sublayer.op))
      if (const int tokens = moe->router.token_table; tokens > 0 && tokens != spec.vocab_size)
        return wrong(sublayer.stored_layer,
                     "expected experts of " + std::to_string(spec.vocab_size) +
                         " tokens (vocab_size), found " + std::to_string(tokens));
    WEIR_TRY(
        std::visit([&](const auto& op) { return check(op, sublayer.stored_layer); }, sublayer.op));
  }
  return {};
}

namespace {

// Architectures that are near to supported ones and are not computed: what is said of each.
struct Refused {
  std::string_view architecture;
  std::string_view why;
};

constexpr std::string_view kOmni = "its encoders of sounds and its talker are not computed";
constexpr std::array kRefused = {
    Refused{"Gemma4UnifiedForConditionalGeneration",
            "its images go into the text's layers without a vision tower, unlike those of "
            "Gemma4ForConditionalGeneration, and that is not computed"},
    Refused{"Qwen2_5OmniForConditionalGeneration", kOmni},
    Refused{"Qwen2_5OmniModel", kOmni},
    Refused{"Qwen3OmniMoeForConditionalGeneration", kOmni},
};

// Names what is near it, and all there are: a file of an older maker may only name its own
// otherwise.
tl::unexpected<Error> unknown_architecture(std::string_view found) {
  found = found.substr(0, 80);
  if (const auto refused = std::ranges::find(kRefused, found, &Refused::architecture);
      refused != kRefused.end())
    return fail(ErrorCode::kUnsupported,
                "config.json: 'architectures': " + std::string(found) +
                    " is not supported: " + std::string(refused->why));
  const std::vector<std::string_view> known = known_architectures();
  std::string message =
      "config.json: 'architectures': expected one that is supported, found " + std::string(found);
  if (const std::string_view near = near_name(found, known); !near.empty())
    message.append("; did you mean ").append(near).append("?");
  message +=
      " (if it is one of those below under another name: --config-override "
      "'architectures=[\"NAME\"]'). "
      "Supported:";
  for (const std::string_view name : known) message.append(" ").append(name);
  return fail(ErrorCode::kUnsupported, message);
}

}  // namespace

Result<ModelSpec> spec_from_config(JsonValue config) {
  if (!config.is_object())
    return fail(ErrorCode::kConfig,
                std::string("config.json: expected an object, found ") + json_type_name(config));
  std::string_view architecture;
  if (config["architectures"].at(0).get(architecture) != simdjson::SUCCESS)
    return fail(ErrorCode::kConfig,
                "config.json: 'architectures': expected a list with a name, found none");
  const FamilyEntry* family = find_family(architecture);
  if (family == nullptr) return unknown_architecture(architecture);
  const card::ConfigReader reader(config);
  ModelSpec spec = family->describe(reader);
  spec.family = architecture;
  WEIR_TRY(reader.finish());
  WEIR_TRY(check_spec(spec));
  return spec;
}

}  // namespace weir::model
