// Request: the body of /v1/chat/completions or /v1/completions as native types, and of the
// endpoints that share its table of fields (request_fields.h).
//
// Threads: a plain value.
#pragma once

#include "api/request/generate_request.h"

namespace weir::api::openai {

struct Request : GenerateRequest {
  bool legacy_functions = false;  // Asked as `functions`: the answer has a `function_call`.
  bool has_stream_options = false;
  bool include_usage = false;     // A last event says it,
  bool continuous_usage = false;  // or every one.
};

}  // namespace weir::api::openai
