// TranscriptRules: which tokens a transcript may go on with. Some never come, some not first; and
// where timestamps are wanted, they come in pairs around each stretch of text, never go back, and
// one comes wherever a timestamp, whichever, is likelier than any single token of text (Radford et
// al. 2022, sections 2.3 and 4.5).
//
// What the rules forbid has no chance. Log-probabilities of a request with rules are those of what
// they leave, because the thresholds that transcripts are judged by are about these.
//
// Threads: TranscriptRules is immutable, and shared by requests; a TranscriptState belongs to one
// Sampler.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/ops.h"

namespace weir::sample {

struct TranscriptRules {
  std::vector<int32_t> suppressed{};  // `suppress_tokens` of generation_config.json.
  // `begin_suppress_tokens`: not first in the output.
  std::vector<int32_t> suppressed_first{};
  // Timestamps are the tokens from this one to the end of the vocabulary; -1: they are not wanted,
  // and nothing below counts.
  int32_t timestamp_begin = -1;
  int32_t no_timestamps = -1;  // <|notimestamps|>, which never comes then.
  // Tokens of text are those below it: none of them comes after a timestamp that ends a stretch.
  int32_t end_of_text = 0;
  // The first timestamp is at most so much after the beginning, in steps of a timestamp
  // (`max_initial_timestamp_index`); -1: anywhere.
  int32_t initial_max = -1;
};

// How far an output is, as the rules see it.
class TranscriptState {
 public:
  // `rules` outlives it.
  explicit TranscriptState(const TranscriptRules& rules) : rules_(rules) {}

  // The output's next token.
  void add(int32_t token);
  // What may not be the next one becomes impossible. REQUIRES: no NaN in `logits`.
  void apply(std::span<float> logits, const kernels::Ops& ops) const;

 private:
  bool is_timestamp(int32_t token) const;
  void keep_pairs(std::span<float> logits) const;
  void keep_order(std::span<float> logits) const;
  void begin_with_timestamp(std::span<float> logits) const;

  const TranscriptRules& rules_;
  int64_t tokens_ = 0;
  // Of the last token, and of the one before it; true where there is none of that.
  bool last_is_time_ = false, before_is_time_ = true;
  int32_t latest_ = -1;  // The last timestamp; -1: none has come.
};

}  // namespace weir::sample
