// Errors of Anthropic's endpoints: {"type":"error","error":{"type","message"},"request_id"}, and
// the statuses that its clients know.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "api/exchange/error_shape.h"
#include "base/result.h"
#include "net/http.h"

namespace weir::api::anthropic {

// True of the endpoints that speak it, and of what begins like them.
bool is_messages_path(std::string_view path);
// True of requests that are answered in Anthropic's forms, errors too: of its endpoints and what
// begins like them, and of the models' pages where the client names a version of its API.
bool speaks_anthropic(const net::HttpRequest& request);

// A full server is 529 here; 429 is a limit of the key.
int http_status(const Error& error);

// `request_id`: empty where there is none to name.
std::string error_json(const Error& error, std::string_view request_id);

// These as a shape.
const ErrorShape& message_errors();

}  // namespace weir::api::anthropic
