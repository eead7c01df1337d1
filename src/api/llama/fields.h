// Fields that llama-server's own endpoints, /completion and /infill, share and others lack or read
// otherwise.
//
// Threads: pure functions.
#pragma once

#include <span>

#include "api/openai/request_fields.h"

namespace weir::api::llama {

// The fields of openai::Endpoint::kLlama and kInfill.
std::span<const openai::RequestField> llama_fields();

// What every such request asks for without saying so.
void complete_llama_request(openai::Request& request);

}  // namespace weir::api::llama
