// Values of bodies that several protocols spell alike: token ids, prompts, stop strings, biases.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "api/request/generate_request.h"
#include "api/request/request_field.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::api {

Result<int32_t> parse_token_id(std::string_view path, JsonValue value, const RequestLimits& limits);
Result<void> parse_token_ids(std::string_view path, JsonArray array, const RequestLimits& limits,
                             std::vector<int32_t>& out);

// A field of prompts, at most `prompts_max` of them: a string, a list of strings, token ids, or a
// list of such lists.
Result<void> parse_prompts(std::string_view path, JsonValue value, size_t prompts_max,
                           const RequestLimits& limits, std::vector<Prompt>& out);

Result<void> parse_stop(const FieldInput& in, GenerateRequest& out);
Result<void> parse_logit_bias(const FieldInput& in, GenerateRequest& out);

// At most kChoicesMax choices of all prompts together.
Result<void> check_choices(const GenerateRequest& request);

}  // namespace weir::api
