// RerankRequest: the bodies of /v1/rerank, in the words of Jina and vLLM, of TEI and of Cohere, and
// of /v1/score as native types.
//
// Threads: pure functions; a plain value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/reference/endpoint_table.h"
#include "api/request/ignored.h"
#include "base/result.h"

namespace weir::api::vectors {

// Documents of one request: as many as texts that are embedded.
inline constexpr size_t kDocumentsMax = 2048;

// Whose answer the client reads.
enum class RerankForm : uint8_t {
  kList,    // vLLM's and Jina's: an object with results.
  kTei,     // Text Embeddings Inference's: an array.
  kCohere,  // Version 2: an object with results and meta.
};

struct RerankRequest {
  RerankForm form = RerankForm::kList;
  std::string model;
  std::vector<std::string> queries;    // One for all documents, or one for each.
  std::vector<std::string> documents;  // At least one.
  std::string document_field;          // Of the body, for errors: "documents", "text_2".
  std::optional<std::string> instruction;
  int64_t top_n = 0;  // 0: all.
  bool return_documents = false;
  bool raw_scores = false;  // The difference of the logits, not a probability.
  // Documents are cut to so many tokens,
  std::optional<int64_t> document_tokens_max;
  // and so that their prompts have at most so many; -1: as many as the context has.
  std::optional<int64_t> prompt_tokens_max;
  Ignored ignored;  // What is not done of what was asked; the answer says so.

  const std::string& query_of(size_t document) const {
    return queries.size() == 1 ? queries[0] : queries[document];
  }
};

// Errors name the field (`documents[3].text`). A body with `texts` is TEI's.
Result<RerankRequest> parse_rerank(std::string_view body);
Result<RerankRequest> parse_cohere_rerank(std::string_view body);
Result<RerankRequest> parse_score(std::string_view body);

// Their fields, for the reference.
std::vector<FieldDoc> rerank_fields();
std::vector<FieldDoc> cohere_rerank_fields();
std::vector<FieldDoc> score_fields();

}  // namespace weir::api::vectors
