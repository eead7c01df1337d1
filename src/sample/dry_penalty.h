// DryPenalty: "don't repeat yourself". A token that would go on with what followed the same words
// before is made less likely, exponentially in how many words already agree. Names and meanings are
// llama.cpp's: where the last L tokens, L at least dry_allowed_length, have come before, the token
// that came after them loses dry_multiplier * dry_base ^ (L - dry_allowed_length); of several L the
// longest counts. No L reaches across a sequence breaker.
//
// Threads: belongs to one Sampler.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sample/sampling_params.h"

namespace weir::sample {

class SamplerScratch;

class DryPenalty {
 public:
  // Takes all memory: for the tokens of the prompt that may be looked at, and `output_max` more.
  // `params` outlives it.
  DryPenalty(const SamplingParams& params, std::span<const int32_t> prompt, int32_t output_max);

  // Looks at no more tokens than a breaker has.
  void add(int32_t token);
  // Linear in dry_penalty_last_n, whatever the breakers are. Uses the scratch's candidates.
  void apply(std::span<float> logits, SamplerScratch& scratch);

 private:
  void match(std::span<const int32_t> window);
  float penalty(int32_t length) const;

  const SamplingParams& params_;
  std::vector<int32_t> history_;
  std::optional<SequenceBreakers::Place> breaker_;  // In the history, the one that begins last.
  // By distance from the last token: how many tokens up to there agree with the last ones.
  std::vector<int32_t> agreeing_;
};

}  // namespace weir::sample
