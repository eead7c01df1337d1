// Errors of Ollama's endpoints: {"error": text}, and the statuses that its clients know.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "api/exchange/error_shape.h"
#include "base/result.h"

namespace weir::api::ollama {

// True of the endpoints that speak it, and of what begins like them.
bool is_ollama_path(std::string_view path);

// A 501: what Ollama does and this server does not.
Error not_implemented(std::string_view what);

std::string error_json(const Error& error);

// These as a shape. A full server is 503 here; 429 is a limit of the key.
const ErrorShape& ollama_errors();

}  // namespace weir::api::ollama
