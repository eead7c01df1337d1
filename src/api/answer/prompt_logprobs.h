// The log-probabilities of a prompt's tokens in vLLM's form (`prompt_logprobs`): for each token an
// object of the token itself and the likeliest in its place, by id; null for the first.
//
// A long prompt's are some megabytes of JSON, which take a while: they are made bit by bit, so that
// a thread that has more to do can turn to that in between.
//
// Threads: owned by one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sched/request.h"
#include "text/tokenizer.h"

namespace weir::api {

class PromptLogprobs {
 public:
  // `top_count`: alternatives of each token.
  PromptLogprobs(const text::Tokenizer& tokenizer, int32_t top_count)
      : tokenizer_(tokenizer), top_count_(top_count) {}

  // Makes the JSON of further tokens, at least one, until about `bytes_max` have come. REQUIRES:
  // not done(); the request's prompt_log and prompt_ranks are there and complete, unless its prompt
  // is a single token.
  void make(const sched::Request& request, size_t bytes_max);
  bool done() const { return done_; }
  // The JSON array, in parts. REQUIRES: done().
  std::vector<std::string> take() { return std::move(parts_); }

 private:
  void append_token(std::string& out, const sched::Request& request, int32_t index) const;

  const text::Tokenizer& tokenizer_;
  const int32_t top_count_;
  std::vector<std::string> parts_;
  int32_t next_ = 0;  // Entry of the prompt's log.
  bool done_ = false;
};

}  // namespace weir::api
