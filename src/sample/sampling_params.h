// SamplingParams: how a row of logits becomes a token. What a client asked, merged with the
// defaults of the command line and generation_config.json; fixed once submitted.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sample/token_bounds.h"

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
  uint64_t seed = 0;  // Philox key; the server draws one when the client gives none.
  std::vector<std::pair<int32_t, float>> logit_bias;  // Token id, addend.
  std::shared_ptr<const TokenBounds> bounds;          // Tokens allowed or forbidden; null: none.
  int32_t top_logprobs = 0;                           // Alternatives to report, 0..20.
  int32_t prompt_top_logprobs = 0;  // The same of the prompt's tokens, where those are wanted.
  // These alternatives, in this order, in place of the most likely ones: top_logprobs of them.
  std::vector<int32_t> reported;
  int32_t min_tokens = 0;               // Stop tokens are impossible before this many.
  std::vector<int32_t> stop_token_ids;  // End-of-sequence tokens (unless ignored) and the client's.
};

}  // namespace weir::sample
