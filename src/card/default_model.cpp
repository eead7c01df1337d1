#include "card/default_model.h"

// Symbols of default_model.S: first byte and one past the last of each file.
#define WEIR_EMBEDDED(name)                         \
  extern "C" const std::byte weir_default_##name[]; \
  extern "C" const std::byte weir_default_##name##_end[];
WEIR_EMBEDDED(config)
WEIR_EMBEDDED(generation_config)
WEIR_EMBEDDED(tokenizer)
WEIR_EMBEDDED(tokenizer_config)
WEIR_EMBEDDED(weights)
#undef WEIR_EMBEDDED

namespace weir::card {

ModelFiles default_model() {
  return ModelFiles::embedded(
      kDefaultModelName, {{"config.json", {weir_default_config, weir_default_config_end}},
                          {"generation_config.json",
                           {weir_default_generation_config, weir_default_generation_config_end}},
                          {"tokenizer.json", {weir_default_tokenizer, weir_default_tokenizer_end}},
                          {"tokenizer_config.json",
                           {weir_default_tokenizer_config, weir_default_tokenizer_config_end}},
                          {"model.safetensors", {weir_default_weights, weir_default_weights_end}}});
}

}  // namespace weir::card
