// Echo: a completion's prompt as the beginning of its text (`echo`), with the log-probabilities of
// its tokens where they were asked for.
//
// The text is that of the tokens, special ones by their names; what the tokenizer itself has put
// before the prompt (BOS) has none.
//
// Threads: owned by one stream.
#pragma once

#include <cstdint>
#include <string>

#include "api/answer/logprob_list.h"
#include "sched/request.h"
#include "text/detokenizer.h"

namespace weir::api {

class Echo {
 public:
  explicit Echo(const text::Tokenizer& tokenizer);

  // The text of further tokens of the prompt, at least one, until about `bytes_max` of text and
  // JSON have come. `logprobs` may be null. REQUIRES: not done(); bytes_max > 0; the request's
  // prompt_log, if there is one, is complete.
  std::string take(const sched::Request& request, size_t bytes_max, LogprobList* logprobs);
  bool done() const { return done_; }
  // Where the text of what was taken ends.
  const text::Detokenizer::Place& end() const { return end_; }

 private:
  const text::Tokenizer& tokenizer_;
  text::Detokenizer detokenizer_;
  int32_t next_ = 0;   // Token of the prompt.
  int32_t added_ = 0;  // Leading tokens that are the tokenizer's own.
  text::Detokenizer::Place end_;
  bool done_ = false;
};

}  // namespace weir::api
