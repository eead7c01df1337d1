// Sampler: one row of logits to one token. Random numbers by seed and position (Philox 4x32-10), so
// the same request gives the same tokens whatever else runs.
//
// The order, which is that of Hugging Face's generate() because its clients know what to expect of
// it: penalties (repetition, frequency, presence), DRY, logit_bias, stop tokens masked below
// min_tokens; then top_n_sigma, then temperature; then the filters top_k, top_p, min_p, typical_p,
// each on what the one before has left, renormalised; then the draw. vLLM differs in taking min_p
// before top_k and top_p.
//
// XTC and the dynamic temperature judge what the filters leave as it is at temperature 1, which is
// where llama.cpp has them. So with one of them the temperature comes last, as there: the filters,
// XTC, temperature. (Whether top_n_sigma comes before or after a temperature makes no difference.)
// Greedy takes the best token, whatever the filters or XTC say.
//
// The rules of a transcript come before all of that, and before log-probabilities are taken.
//
// A grammar comes before the penalties: what it does not allow has no chance, and the token drawn is
// where it goes on. Log-probabilities are those without it.
//
// Threads: a Sampler belongs to one sequence. One member of the team has all of its rows in a pass,
// and a barrier lies between two passes. sample() does not allocate: the constructor takes all
// memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/token_log.h"
#include "grammar/matcher.h"
#include "kernels/ops.h"
#include "sample/dry_penalty.h"
#include "sample/reasoning_budget.h"
#include "sample/sampler_scratch.h"
#include "sample/sampling_params.h"
#include "sample/token_penalties.h"

namespace weir::sample {

// Most tokens that a grammar, or the end of the reasoning, forces after one that was sampled.
inline constexpr size_t kForcedTokensMax = 32;

// What a grammar says of an output after the token just sampled. Without one it always goes on,
// but where the model has computed nothing to sample from.
enum class Continuation : uint8_t {
  kOpen,
  kComplete,   // Nothing can follow.
  kStuck,      // No token of the vocabulary is allowed, and the token sampled means nothing.
  kNoNumbers,  // No logit of the row is a finite number, and the token sampled means nothing.
};

struct SampledToken {
  TokenLogprob chosen;
  std::span<const TokenLogprob>
      top;  // top_logprobs entries, most likely first or as reported; the sampler's memory.
  Continuation continuation = Continuation::kOpen;  // After `forced`.
  // Tokens of output that follow without being sampled; the sampler's memory. They have no
  // log-probabilities, so there are none where those are wanted.
  std::span<const int32_t> forced;
};

// The log-probability of `token` in a row of logits, and the most likely tokens of the row, as many
// as `top` holds or the vocabulary has: as Sampler::sample() reports them, to the bit. NaN in
// `logits` is overwritten.
struct ScoredToken {
  bool has_numbers = true;  // Some logit is a finite number; else the rest means nothing.
  float logprob = 0;
  int32_t rank = 0;  // Of the token among all, from 1; of equals the smaller id goes first.
  size_t top_count = 0;
};
ScoredToken score_token(std::span<float> logits, int32_t token, std::span<TokenLogprob> top,
                        const kernels::Ops& ops, SamplerScratch& scratch);

class Sampler {
 public:
  // `prompt` feeds the penalties. `output_max`: most tokens that will be sampled.
  // `params` outlives the sampler.
  Sampler(const SamplingParams& params, std::span<const int32_t> prompt, int32_t vocab_size,
          int32_t output_max);

  // Binds the output to a grammar. Before the first sample().
  void constrain(std::unique_ptr<grammar::Matcher> matcher) { matcher_ = std::move(matcher); }

  // `logits` [vocab_size] is overwritten. `output_index`: how many tokens of output came before. A
  // token that has been forced may be asked for once more: it is what comes out, and nothing else.
  // Log-probabilities are of the raw distribution, before penalties, bias and filters (decision
  // 21); they are computed only if `top_logprobs` or `want_logprob` asks. NaN counts as -infinity.
  SampledToken sample(std::span<float> logits, int32_t output_index, bool want_logprob,
                      const kernels::Ops& ops, SamplerScratch& scratch);
  // The output ends with this token.
  bool stops(int32_t token) const;

 private:
  // The token is the output's next.
  void note(int32_t token);
  bool is_greedy() const;
  // What the grammar and the request allow; false: everything.
  bool fill_mask(SamplerScratch& scratch) const;
  // Takes the rest from `logits`; false if nothing is left.
  bool forbid(std::span<float> logits, SamplerScratch& scratch) const;
  Continuation go_on(int32_t token, SamplerScratch& scratch) const;
  bool take_closing(SampledToken& result, SamplerScratch& scratch);
  void choose(SampledToken& result, std::span<float> logits, int32_t output_index,
              const kernels::Ops& ops, SamplerScratch& scratch);
  void force(SampledToken& result, SamplerScratch& scratch);
  bool force_token(int32_t token, SampledToken& result, SamplerScratch& scratch);
  void adjust(std::span<float> logits, int32_t output_index, SamplerScratch& scratch);
  int32_t draw(std::span<float> logits, int32_t output_index, const kernels::Ops& ops,
               SamplerScratch& scratch) const;

  const SamplingParams& params_;
  const int32_t output_max_;
  std::optional<TokenPenalties> penalties_;
  std::optional<DryPenalty> dry_;
  ReasoningBudget reasoning_;
  std::optional<TranscriptState> transcript_;
  std::vector<TokenLogprob> top_;
  std::vector<int32_t> past_;  // The output's last tokens, as many as the bounds look at.
  std::unique_ptr<grammar::Matcher> matcher_;  // Null: no grammar.
  std::array<int32_t, kForcedTokensMax> forced_{};
  size_t forced_count_ = 0;
  int32_t decided_ = 0;  // Tokens of output sampled or forced.
};

}  // namespace weir::sample
