// A conversation as the model reads it: the chat template with the request's variables.
//
// Threads: any; slow work for a pool thread.
#pragma once

#include <cstdint>
#include <string>

#include "api/request/generate_request.h"
#include "api/serving/serving_context.h"
#include "base/result.h"

namespace weir::api {

// Renders the conversation by the model's template, or by the request's own.
Result<std::string> render_chat(const ServingContext& serving, const GenerateRequest& request,
                                int64_t now);

}  // namespace weir::api
