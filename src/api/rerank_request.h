// RerankRequest: the bodies of /v1/rerank and /v1/score as native types.
//
// Threads: pure functions; a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/endpoint_table.h"
#include "api/ignored.h"
#include "base/result.h"

namespace weir::api {

// Documents of one request: as many as texts that are embedded.
inline constexpr size_t kDocumentsMax = 2048;

struct RerankRequest {
  std::string model;
  std::vector<std::string> queries;    // One for all documents, or one for each.
  std::vector<std::string> documents;  // At least one.
  std::string document_field;          // Of the body, for errors: "documents", "text_2".
  std::optional<std::string> instruction;
  int64_t top_n = 0;  // 0: all.
  bool return_documents = false;
  Ignored ignored;

  const std::string& query_of(size_t document) const {
    return queries.size() == 1 ? queries[0] : queries[document];
  }
};

// Errors name the field (`documents[3].text`).
Result<RerankRequest> parse_rerank(std::string_view body);
Result<RerankRequest> parse_score(std::string_view body);

// Their fields, for the reference.
std::vector<FieldDoc> rerank_fields();
std::vector<FieldDoc> score_fields();

}  // namespace weir::api
