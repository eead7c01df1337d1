#include "api/vectors/rerank_request.h"

#include "api/request/json_fields.h"
#include "base/json.h"

namespace weir::api::vectors {

namespace {

// A string, or an object with a text.
Result<std::string_view> document_of(const std::string& path, JsonValue value) {
  JsonObject object;
  if (value.get(object) != simdjson::SUCCESS) {
    if (!value.is_string()) return wrong_type(path, "a string or an object with a text", value);
    return as_string(path, value);
  }
  const auto text = json_get(object, "text");
  if (!text) return missing(path + ".text");
  return as_string(path + ".text", *text);
}

Result<std::vector<std::string>> documents_of(std::string_view path, JsonValue value) {
  WEIR_ASSIGN(const JsonArray array, as_array(path, value));
  if (array.size() == 0 || array.size() > kDocumentsMax)
    return out_of_range(path, "expected 1 to " + std::to_string(kDocumentsMax) + " texts, found " +
                                  std::to_string(array.size()));
  std::vector<std::string> documents;
  for (const JsonValue element : array) {
    WEIR_ASSIGN(documents.emplace_back(), document_of(at(path, documents.size()), element));
  }
  return documents;
}

// One text or several.
Result<std::vector<std::string>> texts_of(JsonObject object, std::string_view key) {
  const auto value = json_get(object, key);
  if (!value) return missing(key);
  if (value->is_array()) return documents_of(key, *value);
  if (!value->is_string()) return wrong_type(key, "a string or an array of strings", *value);
  WEIR_ASSIGN(const std::string_view text, as_string(key, *value));
  return std::vector{std::string(text)};
}

Result<void> read_flag(JsonObject object, std::string_view key, bool& flag) {
  const auto value = json_get(object, key);
  if (value && value->get(flag) != simdjson::SUCCESS) return wrong_type(key, "a boolean", *value);
  return {};
}

Result<void> read_count(JsonObject object, std::string_view key, int64_t min,
                        std::optional<int64_t>& count) {
  const auto value = json_get(object, key);
  if (!value) return {};
  WEIR_ASSIGN(count, integer_of(key, *value));
  return check_range(key, static_cast<double>(*count), static_cast<double>(min), INT32_MAX);
}

// What all bodies have.
Result<RerankRequest> parse_common(JsonObject object) {
  RerankRequest request;
  if (const auto value = json_get(object, "model")) {
    WEIR_ASSIGN(request.model, as_string("model", *value));
  }
  if (const auto value = json_get(object, "instruction")) {
    WEIR_ASSIGN(request.instruction, as_string("instruction", *value));
  }
  WEIR_TRY(read_count(object, "truncate_prompt_tokens", -1, request.prompt_tokens_max));
  if (request.prompt_tokens_max == 0)
    return out_of_range("truncate_prompt_tokens", "expected -1 or at least 1, found 0");
  return request;
}

// One query, and the documents to be ordered.
Result<RerankRequest> parse_ranking(JsonObject object, std::string_view document_field) {
  WEIR_ASSIGN(RerankRequest request, parse_common(object));
  const auto query = json_get(object, "query");
  if (!query) return missing("query");
  WEIR_ASSIGN(request.queries.emplace_back(), as_string("query", *query));
  const auto documents = json_get(object, document_field);
  if (!documents) return missing(document_field);
  request.document_field = document_field;
  WEIR_ASSIGN(request.documents, documents_of(document_field, *documents));
  std::optional<int64_t> top_n;
  WEIR_TRY(read_count(object, "top_n", 0, top_n));
  request.top_n = top_n.value_or(0);
  WEIR_TRY(read_count(object, "max_tokens_per_doc", 1, request.document_tokens_max));
  WEIR_TRY(read_flag(object, "return_documents", request.return_documents));
  return request;
}

// The first of two names that the body has; without either the first.
std::string_view present(JsonObject object, std::string_view first, std::string_view second) {
  return json_get(object, first) || !json_get(object, second) ? first : second;
}

}  // namespace

Result<RerankRequest> parse_rerank(std::string_view body) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  const std::string_view field = present(object, "documents", "texts");
  WEIR_ASSIGN(RerankRequest request, parse_ranking(object, field));
  bool truncate = false;
  WEIR_TRY(read_flag(object, "return_text", request.return_documents));
  WEIR_TRY(read_flag(object, "raw_scores", request.raw_scores));
  WEIR_TRY(read_flag(object, "truncate", truncate));
  if (truncate && !request.prompt_tokens_max) request.prompt_tokens_max = -1;
  if (field == "texts") request.form = RerankForm::kTei;
  static const std::vector<FieldDoc> kKnown = rerank_fields();
  request.ignored.add_unknown(object, kKnown);
  return request;
}

Result<RerankRequest> parse_cohere_rerank(std::string_view body) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  WEIR_ASSIGN(RerankRequest request, parse_ranking(object, "documents"));
  request.form = RerankForm::kCohere;
  static const std::vector<FieldDoc> kKnown = cohere_rerank_fields();
  request.ignored.add_unknown(object, kKnown);
  return request;
}

Result<RerankRequest> parse_score(std::string_view body) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  WEIR_ASSIGN(RerankRequest request, parse_common(object));
  const std::string_view queries = present(object, "text_1", "queries");
  const std::string_view documents = present(object, "text_2", "documents");
  WEIR_ASSIGN(request.queries, texts_of(object, queries));
  request.document_field = documents;
  WEIR_ASSIGN(request.documents, texts_of(object, documents));
  const size_t first = request.queries.size(), second = request.documents.size();
  if (first != 1 && first != second)
    return out_of_range(queries, "expected one text, or as many as " + std::string(documents) +
                                     " has, " + std::to_string(second) + ", found " +
                                     std::to_string(first));
  static const std::vector<FieldDoc> kKnown = score_fields();
  request.ignored.add_unknown(object, kKnown);
  return request;
}

namespace {

using enum Treatment;

const FieldDoc kModel{"model", "string", "The model's id or one of its aliases."};
const FieldDoc kQuery{"query", "string", "What is looked for.", kHonoured, 0, 0, true};
const FieldDoc kTopN{"top_n", "integer", "Only the best so many; 0: all.", kHonoured, 0, INT32_MAX};
const FieldDoc kReturn{"return_documents", "boolean", "Each result with its document's text."};
const FieldDoc kPerDocument{"max_tokens_per_doc",
                            "integer",
                            "Documents are cut to so many tokens (Cohere).",
                            kHonoured,
                            1,
                            INT32_MAX};
const FieldDoc kInstruction{"instruction", "string",
                            "What makes a document fit, in the model's words."};
const FieldDoc kTruncation{
    "truncate_prompt_tokens",
    "integer",
    "Documents are cut until their prompts have so many tokens; -1: as many as there is room for "
    "(vLLM).",
    kHonoured,
    -1,
    INT32_MAX};
const FieldDoc kUser{"user", "string", "Accepted.", kIgnored};

}  // namespace

std::vector<FieldDoc> rerank_fields() {
  return {kModel,
          kQuery,
          {"documents", "array", "Strings, or objects with a text."},
          {"texts", "array", "The same, for TEI's clients: the answer is an array."},
          kTopN,
          kReturn,
          {"return_text", "boolean", "TEI's name of return_documents."},
          {"raw_scores", "boolean", "Logits, not probabilities (TEI)."},
          {"truncate", "boolean", "Documents are cut to what there is room for (TEI)."},
          kPerDocument,
          kTruncation,
          kInstruction,
          kUser};
}

std::vector<FieldDoc> cohere_rerank_fields() {
  return {kModel,
          kQuery,
          {"documents", "array", "Strings, or objects with a text.", kHonoured, 0, 0, true},
          kTopN,
          kReturn,
          kPerDocument,
          kTruncation,
          kInstruction,
          kUser};
}

std::vector<FieldDoc> score_fields() {
  return {kModel,
          {"text_1", "string or array", "The query, one for all or one for each of text_2."},
          {"text_2", "string or array", "Documents, one or several."},
          {"queries", "string or array", "Another name of text_1."},
          {"documents", "string or array", "Another name of text_2."},
          kTruncation,
          kInstruction,
          kUser};
}

}  // namespace weir::api::vectors
