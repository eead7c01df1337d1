// /completion, as llama-server has it: a completion in other words, and an answer of its own.
//
// Threads: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "api/openai/request.h"
#include "api/request/request_field.h"

namespace weir::api::llama {

Result<openai::Request> parse_llama_completion(std::string_view body, const RequestLimits& limits);

// For the reference.
std::vector<FieldDoc> llama_completion_fields();

}  // namespace weir::api::llama
