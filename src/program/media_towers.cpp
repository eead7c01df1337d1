#include "program/media_towers.h"

#include <utility>

#include "media/features/sound_plan.h"
#include "media/processor/image_plan.h"
#include "model/families.h"
#include "program/media_settings.h"

namespace weir {

namespace {

// Where all of a prompt sees both ways: what may be said beside the image. PaliGemma was made for
// prompts of 128 tokens at most.
constexpr int32_t kTextBesideImage = 256;

// `settings`: what the files say of the kind, or why there is nothing.
template <class Settings, class OptionsOf>
Result<MediaTower> bind_tower(const ModelChoice& choice, const kernels::Ops& ops, int members,
                              const Result<Settings>& settings, OptionsOf options_of) {
  MediaTower tower;
  if (!settings) {
    tower.refusal = settings.error().message;
    return tower;
  }
  WEIR_ASSIGN(encoder::EncoderOptions options, options_of(*settings));
  options.compute = choice.compute;
  auto bound = encoder::Encoder::bind(choice.model_card, options, ops, members);
  if (!bound && bound.error().code == ErrorCode::kUnsupported) {
    tower.refusal = std::move(bound).error().message;
    return tower;
  }
  if (!bound) return tl::unexpected(choice.model_card.in_folder(std::move(bound).error()));
  tower.encoder = *std::move(bound);
  return tower;
}

Result<encoder::EncoderOptions> for_images(const media::Processor& processor) {
  return encoder::EncoderOptions{.view_pixels_max = media::view_pixels_max(processor)};
}

Result<encoder::EncoderOptions> for_sounds(const media::FrontEnd& front_end) {
  WEIR_ASSIGN(const media::SoundPlan longest,
              media::plan_sound(front_end, front_end.samples_max));
  return encoder::EncoderOptions{.medium = encoder::Medium::kSound, .frames_max = longest.frames};
}

}  // namespace

Result<MediaTowers> bind_media_towers(const ModelChoice& choice, const kernels::Ops& ops,
                                      int members) {
  MediaTowers towers;
  WEIR_ASSIGN(towers.images,
              bind_tower(choice, ops, members, image_processor(choice.model_card), &for_images));
  WEIR_ASSIGN(towers.sounds,
              bind_tower(choice, ops, members, sound_front_end(choice.model_card), &for_sounds));
  return towers;
}

Result<void> check_hearing(const model::Model& model, const MediaTowers& towers) {
  if (model.cross_layers() == 0 || towers.sounds.loaded()) return {};
  return fail(ErrorCode::kUnsupported,
              "the model transcribes: expected an encoder of sounds beside it, found none (" +
                  towers.sounds.refusal + ")");
}

int32_t image_span_rows(const card::ModelCard& card) {
  const Result<media::Processor> processor = image_processor(card);
  const Result<model::ModelSpec> spec = model::spec_from_config(card.config.root());
  if (!processor || !spec || spec->both_ways == model::BothWays::kNone) return 0;
  const int64_t pixels = int64_t{processor->unit} * processor->unit;
  const auto tokens = static_cast<int32_t>(media::view_pixels_max(*processor) / pixels);
  return spec->both_ways == model::BothWays::kPrompt ? tokens + kTextBesideImage : tokens;
}

}  // namespace weir
