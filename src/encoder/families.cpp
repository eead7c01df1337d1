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
    FamilyEntry{"lfm2_vl", family::lfm2_vl},       FamilyEntry{"llama4", family::llama4},
    FamilyEntry{"llava", family::llava},           FamilyEntry{"mistral3", family::mistral3},
    FamilyEntry{"paligemma", family::paligemma},   FamilyEntry{"qwen2_5_vl", family::qwen2_5_vl},
    FamilyEntry{"qwen2_vl", family::qwen2_vl},     FamilyEntry{"qwen3_5", family::qwen3_5},
    FamilyEntry{"qwen3_5_moe", family::qwen3_5},   FamilyEntry{"qwen3_vl", family::qwen3_vl},
    FamilyEntry{"qwen3_vl_moe", family::qwen3_vl}, FamilyEntry{"smolvlm", family::idefics3},
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

Result<EncoderSpec> vision_spec(JsonValue config, const FamilyEntry& family) {
  JsonValue vision;
  if (config["vision_config"].get(vision) != simdjson::SUCCESS)
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
  return spec;
}

Result<EncoderSpec> sound_spec(JsonValue config, const SoundEntry& family) {
  const card::ConfigReader all(config);
  // Whisper's keys lie with those of its decoder, which reads what comes of them.
  if (family.model_type == "whisper") {
    EncoderSpec spec = family.describe({.all = all, .audio = all});
    WEIR_TRY(all.finish());
    return spec;
  }
  JsonValue audio;
  if (config["audio_config"].get(audio) != simdjson::SUCCESS)
    return fail(ErrorCode::kConfig,
                "config.json: audio_config: expected the keys of the audio encoder, found none");
  WEIR_ASSIGN(const model::ModelSpec text, model::spec_from_config(config));
  const card::ConfigReader keys(audio, "config.json", "audio_config.");
  EncoderSpec spec = family.describe({.all = all, .audio = keys, .text_width = text.hidden_size});
  WEIR_TRY(all.status());
  WEIR_TRY(keys.finish());
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
  spec.medium = medium;
  return spec;
}

}  // namespace weir::encoder
