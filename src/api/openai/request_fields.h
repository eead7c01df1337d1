// The table of OpenAI's fields, with what vLLM and llama.cpp add to them. One table drives parsing;
// the reference page and /openapi.json are made from it. Other protocols take rows of it.
//
// Threads: pure functions; constant data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "api/openai/request.h"
#include "api/reference/endpoint_table.h"
#include "api/request/request_field.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::api::openai {

// Whose body has a field: bits of Field::endpoints.
enum class Endpoint : uint8_t {
  kChat = 1,
  kCompletions = 2,
  kResponses = 4,  // responses/request.h
  kInfill = 8,     // llama/infill.h
  kLlama = 16,     // llama-server's /completion, llama/completion.h
};

using RequestField = Field<Request>;

// Every field that is read, refused or knowingly ignored; all others are ignored, and named in the
// answer.
std::span<const RequestField> request_fields();

// The fields of one endpoint, for the reference.
std::vector<FieldDoc> fields_of(Endpoint endpoint);
std::vector<FieldDoc> chat_fields();
std::vector<FieldDoc> completion_fields();

// The table's fields that the endpoint knows. Other protocols add fields of their own.
Result<void> parse_fields(Endpoint endpoint, JsonObject body, const RequestLimits& limits,
                          Request& out);

// The body of a chat or of a completion. Errors name the field (`messages[0].role`). An explicit
// null counts as absent; unknown fields are noted in `ignored`.
Result<Request> parse_generate(Endpoint endpoint, std::string_view body,
                               const RequestLimits& limits);

}  // namespace weir::api::openai
