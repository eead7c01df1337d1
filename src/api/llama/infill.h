// /infill, as llama-server has it: what stands between a prefix and a suffix. Its request is a
// completion with a suffix in other words; its answer is llama-server's own, which editors read.
//
// Threads: any; slow work for a pool thread.
#pragma once

#include <string_view>
#include <vector>

#include "api/generate_request.h"
#include "api/llama/completion.h"
#include "api/prepare.h"

namespace weir::api::llama {

inline constexpr size_t kInfillFilesMax = 256;

Result<GenerateRequest> parse_infill(std::string_view body, const RequestLimits& limits);

// `in.endpoint` is kCompletions. Refused where the model has no fill-in-the-middle tokens.
Result<PreparedLlama> prepare_infill(const ServingContext& serving, MemoryBudget& budget,
                                     const PrepareInput& in);

// For the reference.
std::vector<FieldDoc> infill_fields();

}  // namespace weir::api::llama
