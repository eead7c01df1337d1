// /infill, as llama-server has it: what stands between a prefix and a suffix. Its request is a
// completion with a suffix in other words; its answer is llama-server's own, which editors read.
//
// Threads: pure functions.
#pragma once

#include <string_view>
#include <vector>

#include "api/openai/request.h"
#include "api/request/request_field.h"

namespace weir::api::llama {

inline constexpr size_t kInfillFilesMax = 256;

Result<openai::Request> parse_infill(std::string_view body, const RequestLimits& limits);

// For the reference.
std::vector<FieldDoc> infill_fields();

}  // namespace weir::api::llama
