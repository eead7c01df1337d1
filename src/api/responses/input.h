// The `input` of /v1/responses, with what it continues: the messages of a conversation, and, for
// the store, items with ids.
//
// Threads: pure functions, for the pool.
#pragma once

#include "api/request/json_fields.h"
#include "api/responses/request.h"

namespace weir::api::responses {

// Reads `instructions`, the response before and `input`. REQUIRES: the other fields are read.
Result<void> read_input(JsonObject body, const ResponsesContext& context, ResponsesRequest& out);

}  // namespace weir::api::responses
