// The tools of /v1/responses as functions that a model may call. A function within a namespace is
// NAMESPACE__NAME to the model and {"namespace", "name"} to the client; a custom tool, whose input
// is a text, is a function of one string. Tools that a vendor's server runs are left out.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/request/generate_request.h"
#include "api/request/request_field.h"

namespace weir::api::responses {

// An item of `input` that brings more tools; Codex has all of them there for some models.
inline constexpr std::string_view kToolsItem = "additional_tools";

// Fills `tools` and `functions` from the body's tools and from such items.
Result<void> parse_response_tools(JsonObject body, GenerateRequest& out);
// Fills `tool_choice` and `callable`. REQUIRES: the functions are there.
Result<void> parse_response_choice(const FieldInput& in, GenerateRequest& out);

// The model's name of a function in a namespace; an empty one is none.
std::string name_in_space(std::string_view space, std::string_view name);

// How a custom tool's call looks to the model, and back: {"input": TEXT}. What is no such object,
// because the model has written something else, is the text itself; of one that was cut, as much as
// came.
std::string custom_arguments(std::string_view input);
std::string custom_input(std::string_view arguments);

}  // namespace weir::api::responses
