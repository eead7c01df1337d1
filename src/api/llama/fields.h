// Fields that llama-server's own endpoints, /completion and /infill, share and others lack or read
// otherwise.
//
// Threads: pure functions.
#pragma once

#include <span>

#include "api/generate_request.h"

namespace weir::api::llama {

// Of Endpoint::kLlama and Endpoint::kInfill.
std::span<const Field> llama_fields();

// What every such request asks for without saying so.
void complete_llama_request(GenerateRequest& request);

}  // namespace weir::api::llama
