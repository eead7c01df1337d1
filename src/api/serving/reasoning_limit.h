// How many tokens an answer may think, and how its thinking is closed.
//
// Threads: pure functions, for the pool.
#pragma once

#include <cstdint>
#include <memory>

#include "api/request/generate_request.h"
#include "api/serving/api_config.h"
#include "api/serving/output_plan.h"
#include "sample/reasoning_budget.h"

namespace weir::api {

// The request's budget, else the server's; negative: none.
int64_t reasoning_budget(const ApiConfig& config, const GenerateRequest& request);

// Null where nothing bounds the answer's thinking, or it cannot think.
std::shared_ptr<const sample::ReasoningLimit> reasoning_limit(const ApiConfig& config,
                                                              const GenerateRequest& request,
                                                              const OutputPlan& plan);

}  // namespace weir::api
