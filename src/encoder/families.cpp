#include "encoder/families.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "card/config_reader.h"
#include "encoder/families/family.h"
#include "model/families.h"

namespace weir::encoder {

namespace {

struct FamilyEntry {
  std::string_view model_type;  // As config.json has it.
  family::Describe describe;
};

// Every family whose pictures are computed. Sorted.
constexpr std::array kFamilies = {
    FamilyEntry{"gemma3", family::gemma3},         FamilyEntry{"gemma4", family::gemma4},
    FamilyEntry{"glm4v", family::glm4v},           FamilyEntry{"glm_ocr", family::glm_ocr},
    FamilyEntry{"idefics3", family::idefics3},     FamilyEntry{"internvl", family::internvl},
    FamilyEntry{"internvl_chat", family::internvl_chat},
    FamilyEntry{"lfm2_vl", family::lfm2_vl},       FamilyEntry{"llama4", family::llama4},
    FamilyEntry{"llava", family::llava},           FamilyEntry{"llava_qwen2", family::fastvlm},
    FamilyEntry{"mistral3", family::mistral3},     FamilyEntry{"paligemma", family::paligemma},
    FamilyEntry{"qwen2_5_vl", family::qwen2_5_vl}, FamilyEntry{"qwen2_vl", family::qwen2_vl},
    FamilyEntry{"qwen3_5", family::qwen3_5},       FamilyEntry{"qwen3_5_moe", family::qwen3_5},
    FamilyEntry{"qwen3_vl", family::qwen3_vl},     FamilyEntry{"qwen3_vl_moe", family::qwen3_vl},
    FamilyEntry{"smolvlm", family::idefics3},
};
static_assert(std::ranges::is_sorted(kFamilies, {}, &FamilyEntry::model_type));

struct SoundEntry {
  std::string_view model_type;
  family::DescribeSound describe;
};

// Every family whose sounds are computed. Sorted.
constexpr std::array kSoundFamilies = {
    SoundEntry{"gemma3n", family::gemma3n_audio},
    SoundEntry{"gemma4", family::gemma4_audio},
    SoundEntry{"qwen2_audio", family::qwen2_audio},
    SoundEntry{"whisper", family::whisper},
};
static_assert(std::ranges::is_sorted(kSoundFamilies, {}, &SoundEntry::model_type));

// Numbers of a head, far above any published tower's: attention keeps some in the caches.
constexpr int kHeadDimMax = 512;

// Rows beyond what kernels take, which keys of their own may ask for together, are refused here, so
// that nothing later counts with them.
class SizeCheck {
 public:
  // `keys`: where they are, for messages.
  explicit SizeCheck(const char* keys) : keys_(keys) {}

  Result<void> check(const EncoderSpec& spec) {
    WEIR_TRY(bound("a patch's numbers", int64_t{3} * spec.frames * spec.patch * spec.patch));
    int64_t width = spec.medium == Medium::kSound ? spec.bands : spec.width;
    for (size_t i = 0; i < spec.stages.size(); ++i) {
      WEIR_TRY(check(spec.stages[i], width));
      for (const Level& level : spec.levels) {
        int64_t of_level = width;
        if (level.after != i) continue;
        for (const Stage& stage : level.stages) WEIR_TRY(check(stage, of_level));
      }
    }
    return {};
  }

 private:
  Result<void> bound(const char* what, int64_t found, int64_t most = kernels::kMaxLayerK) const {
    if (found >= 1 && found <= most) return {};
    return fail(ErrorCode::kConfig, std::string("config.json: ") + keys_ + "expected " + what +
                                        " from 1 to " + std::to_string(most) + ", found " +
                                        std::to_string(found));
  }
  // `width` becomes what rows have after it.
  Result<void> check(const Stage& stage, int64_t& width) const {
    if (const auto* attention = std::get_if<Attention>(&stage.op)) {
      WEIR_TRY(bound("a head's numbers", attention->head_dim, kHeadDimMax));
      WEIR_TRY(bound("all heads' numbers", int64_t{attention->heads} * attention->head_dim));
    }
    if (const auto* local = std::get_if<LocalAttention>(&stage.op))
      WEIR_TRY(bound("all heads' numbers", int64_t{local->heads} * local->head_dim));
    if (const auto* conv = std::get_if<TimeConv>(&stage.op)) {
      const int64_t taps = int64_t{conv->time.taps} * conv->band.taps;
      WEIR_TRY(bound("the numbers that a convolution reads", taps * (width / conv->bands)));
      width = int64_t{conv->band.count(conv->bands)} * conv->channels;
    }
    if (const auto* mlp = std::get_if<Mlp>(&stage.op))
      WEIR_TRY(bound("a network's width", mlp->width));
    if (const auto* merge = std::get_if<Merge>(&stage.op))
      width *= int64_t{merge->side} * merge->side;
    if (const auto* project = std::get_if<Project>(&stage.op)) width = project->width;
    if (const auto* convolve = std::get_if<Convolve>(&stage.op)) width = convolve->width;
    return bound("a row's numbers", width);
  }

  const char* keys_;
};

Result<EncoderSpec> vision_spec(JsonValue config, const FamilyEntry& family) {
  // Apple's own files leave it out.
  WEIR_ASSIGN(const JsonDoc nothing, JsonDoc::parse("{}"));
  JsonValue vision = nothing.root();
  if (config["vision_config"].get(vision) != simdjson::SUCCESS &&
      family.model_type != "llava_qwen2")
    return fail(ErrorCode::kConfig,
                "config.json: vision_config: expected the keys of the vision tower, found none");
  WEIR_ASSIGN(const model::ModelSpec text, model::spec_from_config(config));
  const card::ConfigReader all(config), keys(vision, "config.json", "vision_config.");
  EncoderSpec spec = family.describe({.all = all,
                                      .vision = keys,
                                      .text_width = text.hidden_size,
                                      .text_eps = text.final_norm.eps});
  WEIR_TRY(all.status());
  WEIR_TRY(keys.finish());
  if (std::cmp_greater_equal(spec.levels.size(), model::layer_count(text)))
    return fail(ErrorCode::kConfig,
                "config.json: vision_config.deepstack_visual_indexes: expected fewer numbers than "
                "the text has layers, " +
                    std::to_string(model::layer_count(text)) + ", found " +
                    std::to_string(spec.levels.size()));
  WEIR_TRY(SizeCheck("vision_config: ").check(spec));
  return spec;
}

Result<EncoderSpec> sound_spec(JsonValue config, const SoundEntry& family) {
  const card::ConfigReader all(config);
  // Whisper's keys lie with those of its decoder, which reads what comes of them.
  if (family.model_type == "whisper") {
    EncoderSpec spec = family.describe({.all = all, .audio = all});
    spec.medium = Medium::kSound;
    WEIR_TRY(all.finish());
    WEIR_TRY(SizeCheck("").check(spec));
    return spec;
  }
  JsonValue audio;
  if (config["audio_config"].get(audio) != simdjson::SUCCESS)
    return fail(ErrorCode::kConfig,
                "config.json: audio_config: expected the keys of the audio encoder, found none");
  WEIR_ASSIGN(const model::ModelSpec text, model::spec_from_config(config));
  const card::ConfigReader keys(audio, "config.json", "audio_config.");
  EncoderSpec spec = family.describe({.all = all, .audio = keys, .text_width = text.hidden_size});
  spec.medium = Medium::kSound;
  WEIR_TRY(all.status());
  WEIR_TRY(keys.finish());
  WEIR_TRY(SizeCheck("audio_config: ").check(spec));
  return spec;
}

// The entry of a model_type, which there are `media` of.
template <class Entry, size_t n>
Result<const Entry*> find(const std::array<Entry, n>& families, JsonValue config,
                          std::string_view media) {
  std::string_view type;
  if (config["model_type"].get(type) != simdjson::SUCCESS) type = "";
  const auto found = std::ranges::lower_bound(families, type, {}, &Entry::model_type);
  if (found != families.end() && found->model_type == type) return &*found;
  return fail(ErrorCode::kUnsupported, std::string(media) + " of model_type \"" +
                                           std::string(type.substr(0, 80)) + "\" is computed");
}

}  // namespace

Result<EncoderSpec> spec_from_config(JsonValue config, Medium medium) {
  EncoderSpec spec;
  if (medium == Medium::kPicture) {
    WEIR_ASSIGN(const auto* family, find(kFamilies, config, "pictures: no vision tower"));
    WEIR_ASSIGN(spec, vision_spec(config, *family));
    spec.family = family->model_type;
  } else {
    WEIR_ASSIGN(const auto* family, find(kSoundFamilies, config, "sounds: no audio encoder"));
    WEIR_ASSIGN(spec, sound_spec(config, *family));
    spec.family = family->model_type;
  }
  return spec;
}

}  // namespace weir::encoder
