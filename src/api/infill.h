// /infill, as llama-server has it: what stands between a prefix and a suffix. Its request is a
// completion with a suffix in other words; its answer is llama-server's own, which editors read.
//
// Threads: prepare_infill() any; the rest as AnswerShape.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer_shape.h"
#include "api/generate_request.h"
#include "api/prepare.h"

namespace weir::api {

inline constexpr size_t kInfillFilesMax = 256;

Result<GenerateRequest> parse_infill(std::string_view body, const RequestLimits& limits);

// `in.endpoint` is kCompletions. Refused where the model has no fill-in-the-middle tokens.
Result<PreparedAnswer> prepare_infill(const ApiConfig& config, MemoryBudget& budget,
                                      const PrepareInput& in);

std::unique_ptr<AnswerShape> make_infill_shape(std::string model, bool stream);

// For the reference.
std::vector<FieldDoc> infill_fields();

}  // namespace weir::api
