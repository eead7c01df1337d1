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
    FamilyEntry{"llava", family::llava},           FamilyEntry{"llava_qwen2", family::fastvlm},
    FamilyEntry{"mistral3", family::mistral3},     FamilyEntry{"paligemma", family::paligemma},
    FamilyEntry{"qwen2_5_vl", family::qwen2_5_vl}, FamilyEntry{"qwen2_vl", family::qwen2_vl},
    FamilyEntry{"qwen3_5", family::qwen3_5},       FamilyEntry{"qwen3_5_moe", family::qwen3_5},
    FamilyEntry{"qwen3_vl", family::qwen3_vl},     FamilyEntry{"qwen3_vl_moe", family::qwen3_vl},
    FamilyEntry{"smolvlm", family::idefics3},
};
static_assert(std::ranges::is_sorted(kFamilies, {}, &FamilyEntry::model_type));

// Numbers of a head, far above any published tower's: attention keeps some in the caches.
constexpr int kHeadDimMax = 512;

// Rows beyond what kernels take, which keys of their own may ask for together, are refused here, so
// that nothing later counts with them.
class SizeCheck {
 public:
  Result<void> check(const EncoderSpec& spec) {
    WEIR_TRY(bound("a patch's numbers", int64_t{3} * spec.frames * spec.patch * spec.patch));
    int64_t width = spec.width;
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
  static Result<void> bound(const char* what, int64_t found, int64_t most = kernels::kMaxLayerK) {
    if (found >= 1 && found <= most) return {};
    return fail(ErrorCode::kConfig, std::string("config.json: vision_config: expected ") + what +
                                        " from 1 to " + std::to_string(most) + ", found " +
                                        std::to_string(found));
  }
  // `width` becomes what rows have after it.
  static Result<void> check(const Stage& stage, int64_t& width) {
    if (const auto* attention = std::get_if<Attention>(&stage.op)) {
      WEIR_TRY(bound("a head's numbers", attention->head_dim, kHeadDimMax));
      WEIR_TRY(bound("all heads' numbers", int64_t{attention->heads} * attention->head_dim));
    }
    if (const auto* mlp = std::get_if<Mlp>(&stage.op))
      WEIR_TRY(bound("a network's width", mlp->width));
    if (const auto* merge = std::get_if<Merge>(&stage.op))
      width *= int64_t{merge->side} * merge->side;
    if (const auto* project = std::get_if<Project>(&stage.op)) width = project->width;
    if (const auto* convolve = std::get_if<Convolve>(&stage.op)) width = convolve->width;
    return bound("a row's numbers", width);
  }
};

}  // namespace

Result<EncoderSpec> spec_from_config(JsonValue config) {
  std::string_view type;
  if (config["model_type"].get(type) != simdjson::SUCCESS) type = "";
  const auto found = std::ranges::lower_bound(kFamilies, type, {}, &FamilyEntry::model_type);
  if (found == kFamilies.end() || found->model_type != type)
    return fail(ErrorCode::kUnsupported, "pictures: no vision tower of model_type \"" +
                                             std::string(type.substr(0, 80)) + "\" is computed");
  // Apple's own files leave it out.
  WEIR_ASSIGN(const JsonDoc nothing, JsonDoc::parse("{}"));
  JsonValue vision = nothing.root();
  if (config["vision_config"].get(vision) != simdjson::SUCCESS && type != "llava_qwen2")
    return fail(ErrorCode::kConfig,
                "config.json: vision_config: expected the keys of the vision tower, found none");
  WEIR_ASSIGN(const model::ModelSpec text, model::spec_from_config(config));
  const card::ConfigReader all(config), keys(vision, "config.json", "vision_config.");
  EncoderSpec spec = found->describe({.all = all,
                                      .vision = keys,
                                      .text_width = text.hidden_size,
                                      .text_eps = text.final_norm.eps});
  WEIR_TRY(all.status());
  WEIR_TRY(keys.finish());
  if (std::cmp_greater_equal(spec.levels.size(), model::layer_count(text)))
    return fail(
        ErrorCode::kConfig,
        "config.json: vision_config.deepstack_visual_indexes: expected fewer numbers than the "
        "text has layers, " +
            std::to_string(model::layer_count(text)) + ", found " +
            std::to_string(spec.levels.size()));
  WEIR_TRY(SizeCheck().check(spec));
  spec.family = found->model_type;
  return spec;
}

}  // namespace weir::encoder
