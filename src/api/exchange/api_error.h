// Errors on the wire: Error to HTTP status and to OpenAI's error object.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::sched {
struct Request;
}

namespace weir::api {

int http_status(ErrorCode code);

// The kind of an error that is a conflict: 409, in OpenAI's form.
inline constexpr std::string_view kModelInUse = "model_in_use";

// An error for a status that another folder has decided on (HTTP's own errors).
Error error_of_status(int status, std::string message);

// The error of a request that ended with kError; `thing`: what it was about ("answer").
Error engine_error(const sched::Request& request, std::string_view thing);

// {"error":{"message","type","param","code"}}; param and code are strings or null.
std::string error_json(const Error& error);

// True where the client should come back later: 429 and 503 carry Retry-After.
bool is_temporary(ErrorCode code);

// How Anthropic says that a prompt is beyond the context, and what that begins with. Claude Code
// reads it and compacts the conversation.
inline constexpr std::string_view kPromptTooLong = "prompt is too long: ";
std::string prompt_too_long(int64_t tokens, int64_t tokens_max);

}  // namespace weir::api
