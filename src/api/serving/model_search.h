// What GET /models/search asks for, from its query: "q=qwen3%204b&sort=likes". Who answers is the
// program's business (ApiConfig::search_models): this folder knows no hub.
//
// Threads: a pure function, and values.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::api {

struct ModelSearch {
  std::string words;   // Empty: what is built in.
  std::string sort;    // "downloads", "likes", ...
  std::string filter;  // A tag; empty: any.
  std::string cursor;  // Of the page before; empty: the first.
};

// Calls `done` once, on the loop, with the answer's JSON; not at all where the server ends before.
using ModelSearcher =
    std::function<void(ModelSearch search, std::function<void(const Result<std::string>&)> done)>;

// Parameters that it does not have are ignored.
Result<ModelSearch> model_search(std::string_view query);

}  // namespace weir::api
