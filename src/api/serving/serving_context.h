// ServingContext: the config, and beside it what the Api makes of it once and every request is
// prepared with.
//
// Threads: any, at once: the config, the formats and the tokens never change, the stores lock.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/request/fim.h"
#include "api/serving/api_config.h"
#include "api/serving/breaker_store.h"
#include "api/serving/grammar_store.h"
#include "api/serving/output_plan.h"

namespace weir::api {

struct ServingContext {
  explicit ServingContext(const ApiConfig& config_in)
      : config(config_in),
        outputs(choose_formats(config)),
        grammars(*config.tokenizer, config.vocab_size, config.defaults.eos_ids,
                 config.automata_bytes_max, outputs.markers),
        breakers(*config.tokenizer, config.vocab_size),
        infill(find_infill_tokens(*config.tokenizer)),
        image_token(find_token(config, Medium::kPicture)),
        sound_token(find_token(config, Medium::kSound)) {}

  const ApiConfig& config;
  const OutputFormats outputs;  // Of calls and of reasoning.
  mutable GrammarStore grammars;
  mutable BreakerStore breakers;
  const std::optional<InfillTokens> infill;  // If the model can fill in the middle.
  // That a row of an image's features stands for, or of a sound's; none also where the vocabulary has
  // no such token.
  const std::optional<int32_t> image_token;
  const std::optional<int32_t> sound_token;

  std::optional<int32_t> token_of(Medium medium) const {
    return medium == Medium::kSound ? sound_token : image_token;
  }

 private:
  static std::optional<int32_t> find_token(const ApiConfig& config, Medium medium) {
    const std::string_view row = row_text(config, medium);
    if (row.empty()) return std::nullopt;
    const std::vector<int32_t> ids = config.tokenizer->encode(row, {.parse_special = true});
    if (ids.size() != 1) return std::nullopt;
    return ids.front();
  }
};

}  // namespace weir::api
