// The fields that bind an answer to a form: response_format as OpenAI has it, guided_* and
// structured_outputs as vLLM spells them, `grammar` and `json_schema` as llama.cpp does. Each fills
// `grammar`, and only one of them may.
//
// Threads: pure functions.
#pragma once

#include <string>

#include "api/request/generate_request.h"
#include "api/request/request_field.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::api {

// A schema, or its text.
Result<void> bind_schema(const std::string& path, JsonValue schema, GenerateRequest& out);
// Any JSON object.
Result<void> bind_object(const std::string& path, GenerateRequest& out);
Result<void> parse_response_format(const FieldInput& in, GenerateRequest& out);
Result<void> parse_guided_json(const FieldInput& in, GenerateRequest& out);
Result<void> parse_guided_regex(const FieldInput& in, GenerateRequest& out);
Result<void> parse_guided_choice(const FieldInput& in, GenerateRequest& out);
Result<void> parse_guided_grammar(const FieldInput& in, GenerateRequest& out);
Result<void> parse_gbnf(const FieldInput& in, GenerateRequest& out);
Result<void> parse_structured_outputs(const FieldInput& in, GenerateRequest& out);
Result<void> parse_text_config(const FieldInput& in, GenerateRequest& out);  // Of responses.

}  // namespace weir::api
