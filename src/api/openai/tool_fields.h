// The fields that speak of functions: tools and tool_choice, and their older names functions and
// function_call.
//
// Threads: pure functions.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/openai/request.h"
#include "api/request/request_field.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::api::openai {

Result<void> parse_tools(const FieldInput& in, GenerateRequest& out);
Result<void> parse_tool_choice(const FieldInput& in, GenerateRequest& out);
Result<void> parse_functions(const FieldInput& in, Request& out);
Result<void> parse_function_call(const FieldInput& in, GenerateRequest& out);

// {"name": ..., "parameters": ..., "strict": ...}
Result<ToolFunction> function_of(const std::string& path, JsonValue value);
// The names of functions that a choice, or one of its allowed tools, stands for; none: it is left
// out.
using ChoiceReader =
    std::function<Result<std::vector<std::string>>(const std::string& path, JsonObject tool)>;
Result<void> parse_choice(const FieldInput& in, const ChoiceReader& names_of, GenerateRequest& out);

}  // namespace weir::api::openai
