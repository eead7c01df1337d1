// The log-probabilities of a prompt's tokens in vLLM's form (`prompt_logprobs`): for each token an
// object of the token itself and the likeliest in its place, by id; null for the first.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "sched/request.h"
#include "text/tokenizer.h"

namespace weir::api {

// Appends the JSON array. `top_count`: alternatives of each token. REQUIRES: the request's
// prompt_log and prompt_ranks are there and complete, unless its prompt is a single token.
void append_prompt_logprobs(std::string& out, const sched::Request& request,
                            const text::Tokenizer& tokenizer, int32_t top_count);

}  // namespace weir::api
