// /v1/responses as a Protocol, and the pages about stored responses.
//
// Threads: as Protocol; input_items_page() and count_response_tokens() are for the pool, the other
// pages for the loop.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api/prompt/prepare.h"
#include "api/prompt/protocol.h"
#include "api/responses/shape.h"
#include "base/result.h"

namespace weir::api::responses {

// What a response needs beside what any answer does.
struct ResponsesInput {
  std::string id{};     // The response's.
  std::string owner{};  // The key's id, or empty.
  ResponseStore* store = nullptr;
  MemoryBudget* preparing = nullptr;
};

std::unique_ptr<Protocol> make_protocol(ResponsesInput input);

// The tokens that the prompt of such a request has. For the pool.
Result<std::string> count_response_tokens(const ServingContext& serving, const PrepareInput& in,
                                          const ResponsesInput& input);

// Stored responses of `owner`. Errors are kNotFound.
Result<std::string> response_page(ResponseStore& store, std::string_view id, std::string_view owner,
                                  int64_t now);

// What a page about a stored response is made of, in the pool.
struct StoredQuery {
  ResponseStore* store = nullptr;
  MemoryBudget* preparing = nullptr;  // As of ResponsesInput.
  uint64_t caller = 0;                // Exchange::caller().
  std::string id{};                   // The response's.
  std::string owner{};                // The key's id, or empty.
  int64_t now = 0;
  std::string query{};  // Of the URL.
};
// The response as its events (`query`: starting_after).
Result<std::string> response_events_page(const StoredQuery& in);
// `query`: limit, order and after, as OpenAI's lists have them.
Result<std::string> input_items_page(const StoredQuery& in);

// Whether a query asks for them: stream=true.
Result<bool> wants_events(std::string_view query);
// Always an error: what is stored has ended, and nothing runs in the background.
Error cancel_error(ResponseStore& store, std::string_view id, std::string_view owner, int64_t now);
Result<std::string> delete_response_page(ResponseStore& store, std::string_view id,
                                         std::string_view owner, int64_t now);

}  // namespace weir::api::responses
