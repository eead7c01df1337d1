// /v1/messages/count_tokens: how many tokens a prompt would have.
//
// Threads: pure functions, for the pool.
#pragma once

#include <string>

#include "api/prompt/prepare.h"
#include "api/serving/serving_context.h"

namespace weir::api::anthropic {

// {"input_tokens"}. `now` is what a template is told that asks for the date.
Result<std::string> count_tokens(const ServingContext& serving, const PrepareInput& in);

}  // namespace weir::api::anthropic
