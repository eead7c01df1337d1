// Fields of vLLM that bound which tokens are written, shorten the prompt, or show it.
//
// Threads: pure functions.
#pragma once

#include "api/request/generate_request.h"
#include "api/request/request_field.h"
#include "base/result.h"

namespace weir::api::openai {

Result<void> parse_bad_words(const FieldInput& in, GenerateRequest& out);
Result<void> parse_allowed_token_ids(const FieldInput& in, GenerateRequest& out);
Result<void> parse_truncation(const FieldInput& in, GenerateRequest& out);
Result<void> parse_truncation_side(const FieldInput& in, GenerateRequest& out);
Result<void> parse_prompt_logprobs(const FieldInput& in, GenerateRequest& out);
Result<void> check_vllm_fields(const GenerateRequest& request);

}  // namespace weir::api::openai
