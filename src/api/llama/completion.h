// /completion, as llama-server has it: a completion in other words, and an answer of its own. Its
// parts serve /infill, too.
//
// Threads: any, slow work for a pool thread.
#pragma once

#include <string_view>
#include <vector>

#include "api/generate_request.h"
#include "api/llama/shape.h"
#include "api/prepare.h"

namespace weir::api::llama {

struct PreparedLlama {
  PreparedAnswer answer;
  LlamaFacts facts;
};

Result<GenerateRequest> parse_llama_completion(std::string_view body, const RequestLimits& limits);

// `in.endpoint` is kCompletions.
Result<PreparedLlama> prepare_llama_completion(const ServingContext& serving, MemoryBudget& budget,
                                               const PrepareInput& in);
// Of a request that has been parsed.
Result<PreparedLlama> prepare_llama(const ServingContext& serving, MemoryBudget& budget,
                                    const PrepareInput& in, const GenerateRequest& request);

// For the reference.
std::vector<FieldDoc> llama_completion_fields();

}  // namespace weir::api::llama
