// /openapi.json: the endpoints' table and what is beside it, as OpenAPI 3.1.
#include <algorithm>
#include <set>
#include <string>

#include "api/reference/endpoint_table.h"
#include "api/reference/reference.h"
#include "base/check.h"
#include "base/json.h"

namespace weir::api {

namespace {

using reference::Example;
using reference::Operation;

std::string_view stream_type(const Operation& operation) {
  return reference::streams_lines(operation) ? "application/x-ndjson" : "text/event-stream";
}

std::string_view error_component(std::string_view path) {
  if (path.starts_with("/api/")) return "OllamaError";
  return path.starts_with("/v1/messages") ? "MessageError" : "Error";
}

// JSON of our tables, without its white space.
std::string compact(std::string_view json) {
  const Result<JsonDoc> doc = JsonDoc::parse(json);
  CHECK(doc.has_value());
  std::string out;
  JsonWriter(out).value(doc->root());
  return out;
}

void write_reference(JsonWriter& json, std::string_view component) {
  json.begin_object();
  json.field("$ref", "#/components/schemas/" + std::string(component)).end_object();
}

// "string or array" as JSON Schema's types. An explicit null counts as absent.
void write_type(JsonWriter& json, std::string_view type, bool required) {
  constexpr std::string_view kOr = " or ";
  const bool several = !required || type.find(kOr) != std::string_view::npos;
  json.key("type");
  if (several) json.begin_array();
  while (true) {
    const size_t end = type.find(kOr);
    json.value(type.substr(0, end));
    if (end == std::string_view::npos) break;
    type.remove_prefix(end + kOr.size());
  }
  if (!required) json.value("null");
  if (several) json.end_array();
}

void write_range(JsonWriter& json, const FieldDoc& field) {
  if (field.min >= field.max || field.treatment == Treatment::kIgnored) return;
  if (field.max == reference::kInt64Max)
    json.field("format", "int64");
  else
    json.field("minimum", field.min).field("maximum", field.max);
}

bool is_structured(const FieldDoc& field) {
  return field.type.find("array") != std::string_view::npos ||
         field.type.find("object") != std::string_view::npos;
}

// The file of a form.
bool is_bytes(const FieldDoc& field) { return field.name == "file" && field.required; }

void write_field(JsonWriter& json, std::string_view path, const FieldDoc& field) {
  const bool ignored = field.treatment == Treatment::kIgnored;
  const reference::FieldSchema* schema =
      is_structured(field) ? reference::find_field_schema(path, field.name) : nullptr;
  json.key(field.name).begin_object();
  json.field("description", std::string(field.help) + (ignored ? " Without effect." : ""));
  if (!schema) {
    write_type(json, field.type, field.required);
    write_range(json, field);
    if (is_bytes(field)) json.field("format", "binary");
  } else {
    json.key(field.required ? "allOf" : "anyOf").begin_array().raw(compact(schema->json));
    if (!field.required) json.begin_object().field("type", "null").end_object();
    json.end_array();
  }
  json.end_object();
}

void write_request_schema(JsonWriter& json, const EndpointDoc& endpoint) {
  const std::vector<FieldDoc> fields = endpoint.fields();
  json.begin_object().field("type", "object").key("properties").begin_object();
  for (const FieldDoc& field : fields)
    if (field.treatment != Treatment::kRefused) write_field(json, endpoint.path, field);
  json.end_object().key("required").begin_array();
  for (const FieldDoc& field : fields)
    if (field.required) json.value(field.name);
  json.end_array().end_object();
}

void write_text_or_json(JsonWriter& json, const Operation& operation, std::string_view text) {
  if (operation.answer.empty())
    json.value(text);
  else
    json.raw(compact(text));
}

// Of a stream the first event stands for all of them: an example has to fit the schema.
void write_answer_examples(JsonWriter& json, const std::vector<const Example*>& examples,
                           const Operation& operation, bool stream) {
  json.key("examples").begin_object();
  for (const Example* example : examples) {
    if (reference::asks_for_stream(*example) != stream) continue;
    json.key(example->title).begin_object().key("value");
    if (stream) {
      const Result<JsonDoc> doc = JsonDoc::parse(example->answer);
      CHECK(doc.has_value());
      json.value(doc->root().at(0).value());
    } else {
      write_text_or_json(json, operation, example->answer);
    }
    json.end_object();
  }
  json.end_object();
}

void write_body(JsonWriter& json, const EndpointDoc& endpoint, const Operation& operation,
                const std::vector<const Example*>& examples) {
  json.key("requestBody").begin_object().field("required", true);
  json.key("content").begin_object();
  json.key(endpoint.form ? "multipart/form-data" : "application/json").begin_object();
  json.key("schema");
  write_reference(json, operation.request);
  json.key("examples").begin_object();
  for (const Example* example : examples)
    json.key(example->title)
        .begin_object()
        .key("value")
        .raw(compact(example->request))
        .end_object();
  json.end_object().end_object().end_object().end_object();
}

void write_parameters(JsonWriter& json, const Operation& operation) {
  const size_t open = operation.path.find('{');
  if (open == std::string_view::npos && operation.query.empty()) return;
  json.key("parameters").begin_array();
  if (open != std::string_view::npos) {
    const size_t close = operation.path.find('}', open);
    json.begin_object().field("name", operation.path.substr(open + 1, close - open - 1));
    json.field("in", "path").field("required", true);
    json.key("schema").begin_object().field("type", "string").end_object().end_object();
  }
  if (!operation.query.empty()) {
    const std::string list = compact(operation.query);
    json.raw(std::string_view(list).substr(1, list.size() - 2));
  }
  json.end_array();
}

void write_ignored_header(JsonWriter& json) {
  json.key("headers").begin_object().key("x-weir-ignored").begin_object();
  json.field("description", "What the request asked and did not get, if anything.");
  json.key("schema").begin_object().field("type", "string").end_object();
  json.end_object().end_object();
}

void write_answer(JsonWriter& json, const Operation& operation,
                  const std::vector<const Example*>& examples) {
  json.key("200").begin_object().field("description", "The answer.");
  if (!operation.request.empty()) write_ignored_header(json);
  json.key("content").begin_object();
  json.key(operation.answer.empty() ? "text/plain" : "application/json").begin_object();
  json.key("schema");
  if (operation.answer.empty())
    json.begin_object().field("type", "string").end_object();
  else
    write_reference(json, operation.answer);
  write_answer_examples(json, examples, operation, false);
  json.end_object();
  if (!operation.event.empty()) {
    json.key(stream_type(operation)).begin_object().key("schema");
    write_reference(json, operation.event);
    write_answer_examples(json, examples, operation, true);
    json.end_object();
  }
  json.end_object().end_object();
}

void write_answers(JsonWriter& json, const Operation& operation,
                   const std::vector<const Example*>& examples) {
  json.key("responses").begin_object();
  if (!operation.refuses) write_answer(json, operation, examples);
  json.key("default").begin_object().field("description", "An error.");
  json.key("content").begin_object().key("application/json").begin_object().key("schema");
  write_reference(json, error_component(operation.path));
  json.end_object().end_object().end_object().end_object();
}

// No key, where the server has none, or one of the keys. A scope is a role in OpenAPI's words.
void write_requirements(JsonWriter& json, std::string_view scope) {
  json.key("security").begin_array().begin_object().end_object();
  for (const char* scheme : {"key", "anthropic"}) {
    json.begin_object().key(scheme).begin_array();
    if (!scope.empty()) json.value(scope);
    json.end_array().end_object();
  }
  json.end_array();
}

void write_operation(JsonWriter& json, const EndpointDoc& endpoint) {
  std::string method(endpoint.method);
  std::ranges::transform(method, method.begin(),
                         [](char c) { return static_cast<char>(c - 'A' + 'a'); });
  const Operation* operation = reference::find_operation(endpoint.method, endpoint.path);
  CHECK(operation != nullptr);
  const std::vector<const Example*> examples = reference::examples_of(*operation);
  json.key(method).begin_object().field("operationId", operation->id);
  json.key("tags").begin_array().value(operation->tag).end_array();
  json.field("summary", endpoint.summary);
  if (endpoint.access == Access::kOpen)
    json.key("security").begin_array().end_array();
  else if (const std::string_view scope = scope_of(endpoint.access); !scope.empty())
    write_requirements(json, scope);
  write_parameters(json, *operation);
  if (endpoint.fields) write_body(json, endpoint, *operation, examples);
  write_answers(json, *operation, examples);
  json.end_object();
}

void write_security(JsonWriter& json) {
  json.key("securitySchemes").begin_object();
  json.key("key").begin_object().field("type", "http").field("scheme", "bearer");
  json.field("description", "Where the server has keys.").end_object();
  json.key("anthropic").begin_object().field("type", "apiKey").field("in", "header");
  json.field("name", "x-api-key").field("description", "The same keys.").end_object();
  json.end_object();
}

void write_components(JsonWriter& json, const std::vector<EndpointDoc>& endpoints) {
  json.key("components").begin_object();
  write_security(json);
  json.key("schemas").begin_object();
  std::set<std::string_view> written;
  for (const EndpointDoc& endpoint : endpoints) {
    const Operation* operation = reference::find_operation(endpoint.method, endpoint.path);
    if (!endpoint.fields || !written.insert(operation->request).second) continue;
    json.key(operation->request);
    write_request_schema(json, endpoint);
  }
  for (const auto schemas :
       {reference::chat_schemas(), reference::llama_schemas(), reference::response_schemas(),
        reference::message_schemas(), reference::ollama_schemas(), reference::sound_schemas(),
        reference::server_schemas()})
    for (const reference::Schema& schema : schemas) json.key(schema.name).raw(compact(schema.json));
  json.end_object().end_object();
}

void write_head(JsonWriter& json, std::string_view version) {
  json.field("openapi", "3.1.0").key("info").begin_object();
  json.field("title", "Weir").field("version", version);
  json.field("description",
             "A server for language models. A streamed answer is text/event-stream: its schema is "
             "that of each event's data, or Error where the stream fails; OpenAI's streams end "
             "with [DONE]. Ollama's (/api) are application/x-ndjson, a line for each part.");
  json.key("license").begin_object().field("name", "Apache-2.0");
  json.field("identifier", "Apache-2.0").end_object().end_object();
  json.key("servers").begin_array().begin_object().field("url", "/").end_object().end_array();
  write_requirements(json, {});
}

}  // namespace

std::string openapi_json(const std::vector<EndpointDoc>& endpoints, std::string_view version) {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  write_head(json, version);
  json.key("paths").begin_object();
  for (size_t i = 0; i < endpoints.size(); ++i) {
    const std::string_view path = endpoints[i].path;
    const auto first = std::ranges::find(endpoints, path, &EndpointDoc::path);
    if (first != endpoints.begin() + static_cast<std::ptrdiff_t>(i)) continue;  // Written with it.
    json.key(path).begin_object();
    for (const EndpointDoc& endpoint : endpoints)
      if (endpoint.path == path) write_operation(json, endpoint);
    json.end_object();
  }
  json.end_object();
  write_components(json, endpoints);
  json.end_object();
  return out;
}

}  // namespace weir::api
