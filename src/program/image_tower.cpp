#include "program/image_tower.h"

#include <utility>

#include "media/processor/image_plan.h"
#include "model/families.h"
#include "program/image_processor.h"

namespace weir {

namespace {

// Where all of a prompt sees both ways: what may be said beside the image. PaliGemma was made for
// prompts of 128 tokens at most.
constexpr int32_t kTextBesideImage = 256;

}  // namespace

Result<ImageTower> bind_image_tower(const ModelChoice& choice, const kernels::Ops& ops,
                                    int members) {
  ImageTower tower;
  const Result<media::Processor> processor = image_processor(choice.model_card);
  if (!processor) {
    tower.refusal = processor.error().message;
    return tower;
  }
  auto bound = encoder::Encoder::bind(
      choice.model_card,
      {.compute = choice.compute, .view_pixels_max = media::view_pixels_max(*processor)}, ops,
      members);
  if (!bound && bound.error().code == ErrorCode::kUnsupported) {
    tower.refusal = std::move(bound).error().message;
    return tower;
  }
  if (!bound) return tl::unexpected(choice.model_card.in_folder(std::move(bound).error()));
  tower.encoder = *std::move(bound);
  return tower;
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
