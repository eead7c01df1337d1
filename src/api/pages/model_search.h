// What GET /models/search asks for, from its query: "q=qwen3%204b&sort=likes". Who answers is the
// program's business (ApiConfig::search_models): this folder knows no hub.
//
// Threads: a pure function.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::api::pages {

struct ModelSearch {
  std::string words;   // Empty: what is built in.
  std::string sort;    // "downloads", "likes", ...
  std::string filter;  // A tag; empty: any.
  std::string cursor;  // Of the page before; empty: the first.
};

// Parameters that it does not have are ignored.
Result<ModelSearch> model_search(std::string_view query);

}  // namespace weir::api::pages
