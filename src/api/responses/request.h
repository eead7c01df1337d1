// ResponsesRequest: the body of /v1/responses as what a chat is generated from, and what the answer
// repeats of it.
//
// Threads: parse_responses() is for the pool; a ResponsesRequest is a plain value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/memory/memory_lease.h"
#include "api/openai/request.h"
#include "api/reference/endpoint_table.h"
#include "api/request/request_field.h"
#include "api/responses/store.h"
#include "base/result.h"

namespace weir::api::responses {

struct ResponsesRequest {
  openai::Request generate;
  std::shared_ptr<ResponseTurn> turn;  // This request's input, after what it continues.
  size_t items = 0;                    // Of the input, with ids of ours.
  bool store = true;
  bool summary = false;  // Reasoning is shown as a summary, which some clients ask for.

  // --- Repeated by the answer; JSON where the value may have several types.
  std::optional<std::string> previous_response_id;
  std::string instructions = "null";
  std::string metadata = "{}";
  std::string reasoning = R"({"effort":null,"summary":null})";
  std::string text = R"({"format":{"type":"text"}})";
  std::string tools = "[]";
  std::string tool_choice = "\"auto\"";
  std::string truncation = "disabled";
  std::string user = "null";
  std::string safety_identifier = "null";
  std::string prompt_cache_key = "null";
  std::optional<int64_t> max_tool_calls;
};

// What parsing needs to know beside the body.
struct ResponsesContext {
  RequestLimits limits;
  std::string_view id;     // The response's, "resp_...": items get theirs from it.
  std::string_view owner;  // The key's id.
  uint64_t caller = 0;     // Exchange::caller().
  int64_t now = 0;         // Seconds since the epoch.
  ResponseStore* store = nullptr;
  MemoryBudget* preparing = nullptr;  // For conversations that are continued; null: no limit.
};

Result<ResponsesRequest> parse_responses(std::string_view body, const ResponsesContext& context);

std::vector<FieldDoc> responses_fields();

// The id of a response's item: its letters, the response's digits, and a number that no other item
// of the response has.
std::string item_id(std::string_view letters, std::string_view response_id, size_t number);
// The response's id that an item's was made of, or empty.
std::string response_of_item(std::string_view item_id);

}  // namespace weir::api::responses
