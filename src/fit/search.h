// Search: models of the hub that fit some words, and what becomes of those here that the catalogue
// knows; without words, the catalogue.
//
// Threads: the client's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "fit/assessment.h"
#include "fit/catalogue.h"
#include "hub/client.h"

namespace weir::fit {

struct SearchHit {
  hub::ModelInfo model;
  std::string license;                   // Empty: not said.
  std::string format;                    // Of the catalogue's, "4-bit g64"; else empty.
  int64_t file_bytes = 0;                // 0: not known.
  std::optional<Assessment> assessment;  // Of the catalogue's.
};

struct SearchHits {
  std::vector<SearchHit> hits;
  std::string next;  // hub::SearchQuery::cursor of the next page; empty: this was the last.
};

// What is judged for.
struct SearchPlace {
  const Options& options;
  const MemoryLimit& limit;
  std::string disk;  // Where models are kept.
};

// What the hub finds.
Result<SearchHits> search_hub(hub::Client& client, const hub::SearchQuery& query,
                              const Catalogue& catalogue, const SearchPlace& place);
// What the catalogue has: all whose names or ids have each of these words, in any case.
SearchHits search_catalogue(const Catalogue& catalogue, std::string_view words,
                            const SearchPlace& place);

// {"models": [...], "next": "..."}.
void write_json(JsonWriter& writer, const SearchHits& hits);

}  // namespace weir::fit
