#include "program/image_processor.h"

namespace weir {

Result<media::Processor> image_processor(const card::ModelCard& card) {
  const JsonValue config = card.config.root();
  const bool says_tower = config["vision_config"].error() == simdjson::SUCCESS ||
                          config["mm_vision_tower"].error() == simdjson::SUCCESS;
  if (!says_tower) return fail(ErrorCode::kUnsupported, "it has no vision tower");
  if (!card.preprocessor)
    return fail(ErrorCode::kUnsupported, "preprocessor_config.json is not among its files");
  return media::read_processor(card.preprocessor->root(), config);
}

}  // namespace weir
