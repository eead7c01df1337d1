// The response object of /v1/responses: what it repeats of its request, and what stands before and
// after the members of its `output`.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/responses/shape.h"

namespace weir::api::responses {

enum class ResponseStatus : uint8_t { kInProgress, kCompleted, kIncomplete, kFailed };

std::string_view name_of(ResponseStatus status);

// Members that repeat the request. `temperature` and `top_p`: as they are in effect.
std::string response_settings(const ResponsesRequest& request, std::string_view model,
                              float temperature, float top_p);

// `error` may be null.
void append_response_head(std::string& out, const ResponseFacts& facts, ResponseStatus status,
                          const Error* error);
// `usage`: null while the answer is in progress.
void append_response_tail(std::string& out, const Usage* usage);

}  // namespace weir::api::responses
