#include "program/media_settings.h"

namespace weir {

namespace {

// Families write null for what a model of theirs lacks.
bool has(JsonValue config, const char* key) {
  const auto value = config[key];
  return value.error() == simdjson::SUCCESS && !value.is_null();
}

Result<JsonValue> preprocessor_of(const card::ModelCard& card) {
  if (!card.preprocessor)
    return fail(ErrorCode::kUnsupported, "preprocessor_config.json is not among its files");
  return card.preprocessor->root();
}

}  // namespace

Result<media::Processor> image_processor(const card::ModelCard& card) {
  const JsonValue config = card.config.root();
  if (!has(config, "vision_config") && !has(config, "mm_vision_tower"))
    return fail(ErrorCode::kUnsupported, "it has no vision tower");
  WEIR_ASSIGN(const JsonValue preprocessor, preprocessor_of(card));
  return media::read_processor(preprocessor, config);
}

Result<media::FrontEnd> sound_front_end(const card::ModelCard& card) {
  const JsonValue config = card.config.root();
  // Whisper is its encoder's config and its decoder's in one.
  if (!has(config, "audio_config") && !has(config, "num_mel_bins"))
    return fail(ErrorCode::kUnsupported, "it has no encoder of sounds");
  WEIR_ASSIGN(const JsonValue preprocessor, preprocessor_of(card));
  return media::read_front_end(preprocessor, config);
}

}  // namespace weir
