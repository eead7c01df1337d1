// /tokenize, /detokenize and /apply-template, in the shapes of llama.cpp and vLLM at once: each
// reads its own fields and finds its own in the answer.
//
// Threads: pure functions, for the pool.
#pragma once

#include <string>
#include <string_view>

#include "api/prompt/prepare.h"
#include "api/reference/endpoint_table.h"
#include "api/serving/serving_context.h"

namespace weir::api::llama {

// {"content"} (llama.cpp: add_special, parse_special, with_pieces), or {"prompt"} or {"messages"}
// (vLLM: add_special_tokens, return_token_strs) to {"tokens", "count", "max_model_len"}.
Result<std::string> tokenize(const ServingContext& serving, const PrepareInput& in);

// A chat's body to {"prompt"}, the text that the model would read.
Result<std::string> apply_template(const ServingContext& serving, std::string_view body,
                                   int64_t now);

// {"tokens"} to {"content", "prompt"}.
Result<std::string> detokenize(const ApiConfig& config, std::string_view body, int32_t tokens_max);

// These endpoints hold no place in the engine's queue, so their work and their answers have bounds
// of their own: whatever may become a prompt here, and somewhat more for clients that cut
// documents.
inline constexpr size_t kTokenizeBytesMax = 1 << 20;
inline constexpr size_t kDetokenizeIdsMax = 1 << 17;

// Their fields, for the reference.
std::vector<FieldDoc> tokenize_fields();
std::vector<FieldDoc> detokenize_fields();

}  // namespace weir::api::llama
