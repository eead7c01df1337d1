// /v1/responses: from a body to engine requests and the facts of the answer; and the pages about
// stored responses.
//
// Threads: prepare_response() and input_items_page() are for the pool, the other pages for the
// loop.
#pragma once

#include <string>
#include <string_view>

#include "api/prepare.h"
#include "api/responses/shape.h"
#include "base/result.h"

namespace weir::api::responses {

struct PreparedResponse {
  PreparedAnswer answer;
  ResponseFacts facts;
};

struct ResponsesInput {
  PrepareInput prepare;
  std::string id{};     // The response's.
  std::string owner{};  // The key's id, or empty.
  ResponseStore* store = nullptr;
  MemoryBudget* preparing = nullptr;
};

// `budget`: for open requests.
Result<PreparedResponse> prepare_response(const ServingContext& serving, MemoryBudget& budget,
                                          const ResponsesInput& in);

// The tokens that the prompt of such a request has. For the pool.
Result<std::string> count_response_tokens(const ServingContext& serving, const ResponsesInput& in);

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
