#include "program/media_settings.h"

#include <optional>

namespace weir {

namespace {

// Families write null for what a model of theirs lacks.
bool has(JsonValue config, const char* key) {
  const auto value = config[key];
  return value.error() == simdjson::SUCCESS && !value.is_null();
}

std::optional<JsonValue> preprocessor_of(const card::ModelCard& card) {
  return card.preprocessor ? std::optional(card.preprocessor->root()) : std::nullopt;
}

}  // namespace

Result<media::Processor> image_processor(const card::ModelCard& card) {
  const JsonValue config = card.config.root();
  if (!has(config, "vision_config") && !has(config, "mm_vision_tower"))
    return fail(ErrorCode::kUnsupported, "it has no vision tower");
  return media::read_processor(preprocessor_of(card), config);
}

Result<media::FrontEnd> sound_front_end(const card::ModelCard& card) {
  const JsonValue config = card.config.root();
  // Whisper is its encoder's config and its decoder's in one.
  if (!has(config, "audio_config") && !has(config, "num_mel_bins"))
    return fail(ErrorCode::kUnsupported, "it has no encoder of sounds");
  const std::optional<JsonValue> preprocessor = preprocessor_of(card);
  if (!preprocessor)
    return fail(ErrorCode::kUnsupported, "preprocessor_config.json is not among its files");
  return media::read_front_end(*preprocessor, config);
}

}  // namespace weir
