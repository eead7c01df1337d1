#include "api/rerank_request.h"

#include "api/generate_request.h"
#include "api/json_fields.h"
#include "base/json.h"

namespace weir::api {

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

// What both bodies have.
Result<RerankRequest> parse_common(JsonObject object) {
  RerankRequest request;
  if (const auto value = json_get(object, "model")) {
    WEIR_ASSIGN(request.model, as_string("model", *value));
  }
  if (const auto value = json_get(object, "instruction")) {
    WEIR_ASSIGN(request.instruction, as_string("instruction", *value));
  }
  return request;
}

}  // namespace

Result<RerankRequest> parse_rerank(std::string_view body) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  WEIR_ASSIGN(RerankRequest request, parse_common(object));
  const auto query = json_get(object, "query");
  if (!query) return missing("query");
  WEIR_ASSIGN(request.queries.emplace_back(), as_string("query", *query));
  const auto documents = json_get(object, "documents");
  if (!documents) return missing("documents");
  request.document_field = "documents";
  WEIR_ASSIGN(request.documents, documents_of("documents", *documents));
  if (const auto value = json_get(object, "top_n")) {
    WEIR_ASSIGN(request.top_n, integer_of("top_n", *value));
    WEIR_TRY(check_range("top_n", static_cast<double>(request.top_n), 0, INT32_MAX));
  }
  const auto returned = json_get(object, "return_documents");
  if (returned && returned->get(request.return_documents) != simdjson::SUCCESS)
    return wrong_type("return_documents", "a boolean", *returned);
  static const std::vector<FieldDoc> kKnown = rerank_fields();
  request.ignored.add_unknown(object, kKnown);
  return request;
}

Result<RerankRequest> parse_score(std::string_view body) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  WEIR_ASSIGN(RerankRequest request, parse_common(object));
  WEIR_ASSIGN(request.queries, texts_of(object, "text_1"));
  request.document_field = "text_2";
  WEIR_ASSIGN(request.documents, texts_of(object, "text_2"));
  const size_t first = request.queries.size(), second = request.documents.size();
  if (first != 1 && first != second)
    return out_of_range("text_1", "expected one text, or as many as text_2 has, " +
                                      std::to_string(second) + ", found " + std::to_string(first));
  static const std::vector<FieldDoc> kKnown = score_fields();
  request.ignored.add_unknown(object, kKnown);
  return request;
}

std::vector<FieldDoc> rerank_fields() {
  using enum Treatment;
  return {{"model", "string", "The model's id or one of its aliases."},
          {"query", "string", "What is looked for.", kHonoured, 0, 0, true},
          {"documents", "array", "Strings, or objects with a text.", kHonoured, 0, 0, true},
          {"top_n", "integer", "Only the best so many; 0: all.", kHonoured, 0, INT32_MAX},
          {"return_documents", "boolean", "Each result with its document's text."},
          {"instruction", "string", "What makes a document fit, in the model's words."},
          {"user", "string", "Accepted.", kIgnored}};
}

std::vector<FieldDoc> score_fields() {
  using enum Treatment;
  return {{"model", "string", "The model's id or one of its aliases."},
          {"text_1", "string or array", "The query, one for all or one for each of text_2.",
           kHonoured, 0, 0, true},
          {"text_2", "string or array", "Documents, one or several.", kHonoured, 0, 0, true},
          {"instruction", "string", "What makes a document fit, in the model's words."},
          {"user", "string", "Accepted.", kIgnored}};
}

}  // namespace weir::api
