// Gemma 3n's vocabularies of vision and hearing, which follow the text's.
#include "model/media_tokens.h"

#include "card/config_reader.h"

namespace weir::model {

namespace {

using card::ConfigReader;

// `usual`: what its configuration in transformers has.
Result<MediaTokens> tokens_of(const ConfigReader& c, const char* key, const char* projector,
                              MediaTokens usual) {
  usual.modules = {std::string("model.") + projector, projector};
  const auto found = c.value(key);
  if (!found) return usual;
  const ConfigReader tower(*found, "config.json", std::string(key) + ".");
  usual.first = tower.int_or("vocab_offset", usual.first, 0);
  usual.count = tower.int_or("vocab_size", usual.count, 1, 1 << 20);
  usual.width = tower.int_or("hidden_size", usual.width, 1, 1 << 16);
  usual.eps = tower.float_or("rms_norm_eps", usual.eps);
  WEIR_TRY(tower.status());
  return usual;
}

}  // namespace

Result<std::vector<MediaTokens>> media_tokens(JsonValue config) {
  std::vector<MediaTokens> all;
  std::string_view type;
  if (config["model_type"].get(type) != simdjson::SUCCESS || type != "gemma3n") return all;
  const ConfigReader c(config);
  WEIR_ASSIGN(MediaTokens seen, tokens_of(c, "vision_config", "embed_vision",
                                          {.first = 262144, .count = 128, .width = 2048}));
  WEIR_ASSIGN(MediaTokens heard, tokens_of(c, "audio_config", "embed_audio",
                                           {.first = 262272, .count = 128, .width = 1536}));
  all.push_back(std::move(seen));
  all.push_back(std::move(heard));
  return all;
}

}  // namespace weir::model
