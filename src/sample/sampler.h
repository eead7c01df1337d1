// Sampler: one row of logits to one token. Random numbers by seed and position (Philox 4x32-10), so
// the same request gives the same tokens whatever else runs.
//
// Threads: a Sampler belongs to one sequence; whichever team member has the row calls it, and a
// barrier lies between two rows of one sequence. sample() does not allocate: the constructor takes
// all memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/token_log.h"
#include "kernels/ops.h"
#include "sample/sampling_params.h"

namespace weir::sample {

// Memory for one row at a time, one per team member: candidate lists of the vocabulary's size.
class SamplerScratch {
 public:
  explicit SamplerScratch(int32_t vocab_size);
  std::span<TokenLogprob> candidates() { return candidates_; }

 private:
  std::vector<TokenLogprob> candidates_;
};

struct SampledToken {
  TokenLogprob chosen;
  std::span<const TokenLogprob>
      top;  // top_logprobs entries, most likely first; the sampler's memory.
};

class Sampler {
 public:
  // `prompt` feeds the repetition penalty. `output_max`: most tokens that will be sampled.
  Sampler(const SamplingParams& params, std::span<const int32_t> prompt, int32_t vocab_size,
          int32_t output_max);

  // `logits` [vocab_size] is overwritten. `output_index`: how many tokens of output came before.
  // Log-probabilities are of the raw distribution, before penalties, bias and filters (decisions
  // 26); they are computed only if `top_logprobs` or `want_logprob` asks.
  SampledToken sample(std::span<float> logits, int32_t output_index, bool want_logprob,
                      const kernels::Ops& ops, SamplerScratch& scratch);

 private:
  struct Count {
    int32_t token = -1;
    int32_t in_output = 0;
    bool in_prompt = false;
  };
  const SamplingParams& params_;
  std::vector<Count> counts_;  // Open-addressed by token; only if a penalty is on.
  std::vector<TokenLogprob> top_;
};

}  // namespace weir::sample
