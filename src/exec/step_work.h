// StepWork: a batch, what is done with the rows that are wanted of it, and what comes of them. The
// engine fills it before a step and reads the results after it.
//
// Threads: while the step runs, the executor's members read the batch and the jobs and write the
// results of their rows, each exactly once. The next step's batch reads `taken`, so that it stays
// as it is until that step has ended; the other results may be taken as soon as the step has.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/token_log.h"
#include "exec/pooling.h"
#include "model/batch.h"
#include "sample/sampler.h"

namespace weir::exec {

// Alternatives that may be reported beside each token: OpenAI's limit.
inline constexpr int32_t kTopLogprobsMax = 20;

// The next tokens of a sequence are chosen: of Wanted::kNext one, of kVerify as many as the drafts
// in its rows allow.
struct Choose {
  sample::Sampler* sampler = nullptr;  // The sequence's.
  bool logprobs = false;
  // How many tokens of output come before the first row's next one; where the slice's position is
  // known late, so many more as the drafts before it.
  int32_t output_index = 0;
  // How likely this token would be there, by the model alone (StepResults::probed); -1: none is asked.
  int32_t probe = -1;
};

// How likely the rows' next tokens are, which are known (Wanted::kScore).
struct Score {
  const int32_t* following = nullptr;  // By row.
  int32_t tops = 0;                    // Alternatives reported of each.
};

// The rows' hidden states go into one vector (Wanted::kHidden).
struct Pool {
  PooledPart part;
  std::span<float> vector;  // [hidden_size]
};

// What is done with the rows of one entry of Batch::wanted.
using Job = std::variant<Choose, Score, Pool>;

// A slice that could not be computed.
struct Failure {
  int32_t slice = 0;
  std::string why;
};

struct StepResults {
  explicit StepResults(int32_t rows_max);

  void clear() { failures.clear(); }

  // By row of the batch: of a row whose next token was chosen or scored.
  std::vector<TokenLogprob> chosen;
  std::vector<int32_t> top_counts;
  std::vector<int32_t> ranks;  // Of scored tokens in the vocabulary, from 1.
  std::vector<float> probed;   // By the first row of an entry: Choose::probe's log-probability.
  std::vector<sample::Continuation> continuations;
  std::vector<int32_t> forced_counts;
  std::span<TokenLogprob> tops(int32_t row) {
    return std::span(tops_).subspan(static_cast<size_t>(row) * kTopLogprobsMax, kTopLogprobsMax);
  }
  // What follows the token chosen, without a choice.
  std::span<int32_t> forced(int32_t row) {
    return std::span(forced_).subspan(static_cast<size_t>(row) * sample::kForcedTokensMax,
                                      sample::kForcedTokensMax);
  }

  // By the first row of an entry of kNext or kVerify: what the next step begins with
  // (Batch::before), and how many tokens of output came before the first one chosen. From there on
  // rows 0 to taken.drafts have results.
  std::vector<model::Taken> taken;
  std::vector<int32_t> outputs_before;

  std::vector<Failure> failures;

 private:
  std::vector<TokenLogprob> tops_;
  std::vector<int32_t> forced_;
};

struct StepWork {
  model::Batch batch;
  std::span<const Job> jobs;  // By entry of batch.wanted.
  StepResults& results;
};

}  // namespace weir::exec
