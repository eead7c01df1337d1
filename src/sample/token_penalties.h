// TokenPenalties: the repetition, frequency and presence penalties. Tokens that have come before
// are made less likely: repetition looks at the prompt and the output, the others at the output.
// With repeat_last_n only the last tokens count.
//
// Threads: belongs to one Sampler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sample/sampling_params.h"

namespace weir::sample {

class TokenPenalties {
 public:
  // Takes all memory: for the prompt, if it counts, and `output_max` tokens and one more: the row
  // that is computed after the end is sampled and dropped. `params` outlives it.
  // REQUIRES: params.has_penalties().
  TokenPenalties(const SamplingParams& params, std::span<const int32_t> prompt, int32_t vocab_size,
                 int32_t output_max);

  // The output's next token.
  void add(int32_t token) { count(token, /*of_output=*/true); }
  // Linear in the distinct tokens that have come.
  void apply(std::span<float> logits) const;

 private:
  // A token that the penalties may change.
  struct Count {
    int32_t token = -1;
    int32_t in_output = 0;  // Of the tokens that the penalties see.
    int32_t seen = 0;       // The same, those of the prompt included.
  };

  Count& count_of(int32_t token);
  void count(int32_t token, bool of_output);

  const SamplingParams& params_;
  const bool repeats_;          // The repetition penalty is on.
  std::vector<Count> counts_;   // Dense, in order of appearance.
  std::vector<int32_t> slots_;  // Open-addressed by token: index into counts_, or -1.
  // The tokens that the penalties see, where that is not all: the oldest is overwritten.
  std::vector<int32_t> seen_;
  size_t seen_prompt_ = 0;  // How many of the prompt's have been in it,
  size_t seen_count_ = 0;   // and of all.
};

}  // namespace weir::sample
