// SamplingParams: how a row of logits becomes a token. What a client asked, merged with the
// defaults of the command line and generation_config.json; fixed once submitted.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sample/reasoning_budget.h"
#include "sample/sequence_breakers.h"
#include "sample/token_bounds.h"
#include "sample/transcript_rules.h"

namespace weir::sample {

struct SamplingParams {
  float temperature = 1;  // 0: greedy.
  int32_t top_k = 0;      // 0: all.
  float top_p = 1;
  float min_p = 0;
  float typical_p = 1;
  float repetition_penalty = 1;  // Over prompt and output (Keskar et al. 2019).
  float frequency_penalty = 0;   // Over the output, as OpenAI documents it.
  float presence_penalty = 0;
  int32_t repeat_last_n = -1;  // The three see so many of the last tokens; -1: all.
  uint64_t seed = 0;           // Philox key; the server draws one when the client gives none.
  std::vector<std::pair<int32_t, float>> logit_bias;  // Token id, addend.
  std::shared_ptr<const TokenBounds> bounds;          // Tokens allowed or forbidden; null: none.
  int32_t top_logprobs = 0;                           // Alternatives to report, 0..20.
  int32_t prompt_top_logprobs = 0;  // The same of the prompt's tokens, where those are wanted.
  // These alternatives, in this order, in place of the most likely ones: top_logprobs of them.
  std::vector<int32_t> reported;
  int32_t min_tokens = 0;               // Stop tokens are impossible before this many.
  std::vector<int32_t> stop_token_ids;  // End-of-sequence tokens (unless ignored) and the client's.

  // llama.cpp's, with its names and meanings. Top-n-sigma (Tang et al. 2024): 0 or less is off.
  float top_n_sigma = -1;
  // Exclude top choices; a threshold above a half is never met by two tokens, and off.
  float xtc_probability = 0;
  float xtc_threshold = 0.1f;
  // The temperature lies between temperature - range and temperature + range; 0: it is fixed.
  float dynatemp_range = 0;
  float dynatemp_exponent = 1;
  // Don't repeat yourself (dry_penalty.h).
  float dry_multiplier = 0;  // 0: off.
  float dry_base = 1.75f;    // Below 1: off.
  int32_t dry_allowed_length = 2;
  int32_t dry_penalty_last_n = 64;                       // -1: prompt and output; 0: off.
  std::shared_ptr<const SequenceBreakers> dry_breakers;  // Null: none.

  std::shared_ptr<const ReasoningLimit> reasoning;    // Null: none.
  std::shared_ptr<const TranscriptRules> transcript;  // Null: it is none.

  bool has_dry() const { return dry_multiplier > 0 && dry_base >= 1 && dry_penalty_last_n != 0; }
  bool has_xtc() const { return xtc_probability > 0 && xtc_threshold <= 0.5f; }
  bool has_penalties() const {
    return repeat_last_n != 0 &&
           (repetition_penalty != 1 || frequency_penalty != 0 || presence_penalty != 0);
  }
};

}  // namespace weir::sample
