// TranscriptRules: which tokens a transcript may go on with. Some never come, some not first; and
// where timestamps are wanted, they come in pairs around each stretch of text, never go back, and
// one comes wherever a timestamp, whichever, is likelier than any single token of text (Radford et
// al. 2022, sections 2.3 and 4.5).
//
// What the rules forbid has no chance. Log-probabilities of a request with rules are those of what
// they leave, because the thresholds that transcripts are judged by are about these.
//
// Threads: immutable, and shared by requests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace weir::sample
