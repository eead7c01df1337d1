// Sampler: one row of logits to one token. Random numbers by seed and position (Philox 4x32-10), so
// the same request gives the same tokens whatever else runs.
//
// The order, which is that of Hugging Face's generate() because its clients know what to expect of
// it: penalties (repetition, frequency, presence), logit_bias, stop tokens masked below min_tokens;
// then temperature; then the filters top_k, top_p, min_p, typical_p, each on what the one before
// has left, renormalised; then the draw. vLLM differs in taking min_p before top_k and top_p.
//
// A grammar comes before all of that: what it does not allow has no chance, and the token drawn is
// where it goes on. So do the tokens that a request allows at all; those that it forbids come last,
// and yield where a grammar leaves nothing else. Log-probabilities are those without either.
//
// Threads: a Sampler belongs to one sequence; whichever team member has the row calls it, and a
// barrier lies between two rows of one sequence. sample() does not allocate: the constructor takes
// all memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/token_log.h"
#include "kernels/ops.h"
#include "sample/grammar/matcher.h"
#include "sample/sampling_params.h"

namespace weir::sample {

// A token still in play, and what it is ordered by: a logit, a weight, or a distance.
struct Candidate {
  int32_t token = -1;
  float key = 0;
};

// Memory for one row at a time, one per team member: a candidate list and a row of the vocabulary's
// size.
class SamplerScratch {
 public:
  explicit SamplerScratch(int32_t vocab_size);
  std::span<Candidate> candidates() { return candidates_; }
  std::span<float> raw_logits() { return raw_logits_; }
  // One per block of kBlockTokens logits.
  std::span<float> block_maxima() { return block_maxima_; }
  // One bit per token.
  std::span<uint64_t> mask() { return mask_; }
  grammar::MatchScratch& match() { return match_; }

  static constexpr int32_t kBlockTokens = 64;

 private:
  std::vector<Candidate> candidates_;
  std::vector<float> raw_logits_;
  std::vector<float> block_maxima_;
  std::vector<uint64_t> mask_;
  grammar::MatchScratch match_;
};

// Most tokens that a grammar forces behind one that was sampled.
inline constexpr size_t kForcedTokensMax = 32;

// What a grammar says of an output behind the token just sampled. Without one it always goes on.
enum class Continuation : uint8_t {
  kOpen,
  kComplete,  // Nothing can follow.
  kStuck,     // No token of the vocabulary is allowed, and the token sampled means nothing.
};

struct SampledToken {
  TokenLogprob chosen;
  std::span<const TokenLogprob>
      top;  // top_logprobs entries, most likely first or as reported; the sampler's memory.
  Continuation continuation = Continuation::kOpen;  // Behind `forced`.
  // Tokens of output that follow without being sampled; the sampler's memory. They have no
  // log-probabilities, so there are none where those are wanted.
  std::span<const int32_t> forced;
};

// The log-probability of `token` in a row of logits, and the most likely tokens of the row, as many
// as `top` holds or the vocabulary has: as Sampler::sample() reports them, to the bit. NaN in
// `logits` is overwritten.
struct ScoredToken {
  float logprob = 0;
  int32_t rank = 0;  // Of the token among all, from 1; of equals the smaller id goes first.
  size_t top_count = 0;
};
ScoredToken score_token(std::span<float> logits, int32_t token, std::span<TokenLogprob> top,
                        const kernels::Ops& ops, SamplerScratch& scratch);

class Sampler {
 public:
  // `prompt` feeds the repetition penalty. `output_max`: most tokens that will be sampled.
  // `params` outlives the sampler.
  Sampler(const SamplingParams& params, std::span<const int32_t> prompt, int32_t vocab_size,
          int32_t output_max);

  // Binds the output to a grammar. Before the first sample().
  void constrain(std::unique_ptr<grammar::Matcher> matcher) { matcher_ = std::move(matcher); }

  // `logits` [vocab_size] is overwritten. `output_index`: how many tokens of output came before. A
  // token that has been forced may be asked for once more: it is what comes out, and nothing else.
  // Log-probabilities are of the raw distribution, before penalties, bias and filters (decisions
  // 26); they are computed only if `top_logprobs` or `want_logprob` asks. NaN counts as -infinity.
  SampledToken sample(std::span<float> logits, int32_t output_index, bool want_logprob,
                      const kernels::Ops& ops, SamplerScratch& scratch);

 private:
  // A token that penalties may change.
  struct Count {
    int32_t token = -1;
    int32_t in_output = 0;
    bool in_prompt = false;
  };

  Count& count_of(int32_t token);
  // The token is the output's next.
  void note(int32_t token);
  // What the grammar and the request allow; false: everything.
  bool fill_mask(SamplerScratch& scratch) const;
  // Takes the rest from `logits`; false if nothing is left.
  bool forbid(std::span<float> logits, SamplerScratch& scratch) const;
  Continuation go_on(int32_t token, SamplerScratch& scratch) const;
  void force(SampledToken& result, SamplerScratch& scratch);
  void adjust(std::span<float> logits, int32_t output_index) const;
  int32_t draw(std::span<float> logits, int32_t output_index, const kernels::Ops& ops,
               SamplerScratch& scratch) const;
  size_t narrow(std::span<float> row, int32_t best, const kernels::Ops& ops,
                SamplerScratch& scratch) const;

  const SamplingParams& params_;
  const int32_t output_max_;
  bool repeats_ = false;        // The repetition penalty is on,
  bool counts_output_ = false;  // or any penalty.
  std::vector<Count> counts_;   // Dense, in order of appearance.
  std::vector<int32_t> slots_;  // Open-addressed by token: index into counts_, or -1.
  std::vector<TokenLogprob> top_;
  std::vector<int32_t> past_;  // The output's last tokens, as many as the bounds look at.
  std::unique_ptr<grammar::Matcher> matcher_;  // Null: no grammar.
  std::array<int32_t, kForcedTokensMax> forced_{};
  size_t forced_count_ = 0;
  int32_t decided_ = 0;  // Tokens of output sampled or forced.
};

}  // namespace weir::sample
