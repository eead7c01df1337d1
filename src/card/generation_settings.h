// GenerationSettings: how a model's makers want tokens to be sampled, and which of them end an
// answer: generation_config.json.
//
// Threads: a plain value; the reader may run anywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "card/model_files.h"

namespace weir::card {

// How transcripts are sampled, of a speech model.
struct SpeechSettings {
  std::vector<int32_t> suppressed{};        // `suppress_tokens`: they never come.
  std::vector<int32_t> suppressed_first{};  // `begin_suppress_tokens`: nor these at first.
  // `max_initial_timestamp_index`: the first timestamp is at most so much after the beginning, in
  // steps of 20 ms. The reference has one second where the file does not say.
  int32_t initial_timestamp_max = 50;
  // `alignment_heads`: layers and heads of cross attention that follow the sound; empty: not known.
  std::vector<std::pair<int32_t, int32_t>> alignment_heads{};
};

struct GenerationSettings {
  // Within the ranges that make sense; absent: the file does not say.
  std::optional<double> temperature, top_k, top_p, min_p, typical_p, repetition_penalty;
  // End-of-sequence tokens; empty if the files name none.
  std::vector<int32_t> eos_ids;
  SpeechSettings speech{};
};

// A missing file is no error, a malformed one is (kConfig, naming file and key). eos_token_id comes
// from generation_config.json, else from `config`, which is config.json (also its text_config or llm_config).
Result<GenerationSettings> read_generation_settings(const ModelFiles& files, JsonValue config);

}  // namespace weir::card
