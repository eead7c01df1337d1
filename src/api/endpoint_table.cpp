// The table as pages: docs/api.md for people, /openapi.json for machines.
#include "api/endpoint_table.h"

#include <algorithm>
#include <charconv>

#include "base/json.h"

namespace weir::api {

namespace {

std::string number_text(double number) {
  char buffer[32];
  const auto format = number == static_cast<double>(INT32_MAX) || number == -0x1p31
                          ? std::chars_format::fixed
                          : std::chars_format::general;
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, number, format).ptr);
}

std::string_view access_text(Access access) {
  switch (access) {
    case Access::kOpen:
      return "none";
    case Access::kAnyKey:
      return "any";
    case Access::kMonitor:
      return "scope all or monitor";
    case Access::kApi:
      return "scope all or api";
  }
  return {};
}

std::string_view treatment_text(const FieldDoc& field) {
  switch (field.treatment) {
    case Treatment::kHonoured:
      return field.required ? "required" : "honoured";
    case Treatment::kIgnored:
      return "ignored";
    case Treatment::kRefused:
      return "refused";
  }
  return {};
}

// A cell of a table: bars would end it.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

void append_endpoint(std::string& out, const EndpointDoc& endpoint) {
  out.append("\n## ").append(endpoint.method).append(" ").append(endpoint.path).append("\n\n");
  out.append(endpoint.summary).append(" Key: ").append(access_text(endpoint.access)).append(".\n");
  if (!endpoint.fields) return;
  out +=
      "\n| field | type | range | what becomes of it | meaning |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const FieldDoc& field : endpoint.fields()) {
    const std::string range =
        field.min < field.max ? number_text(field.min) + " to " + number_text(field.max) : "";
    out.append("| `").append(field.name).append("` | ").append(cell(field.type)).append(" | ");
    out.append(range).append(" | ").append(treatment_text(field)).append(" | ");
    out.append(cell(field.help)).append(" |\n");
  }
}

// "string or array" as JSON Schema's types.
void write_type(JsonWriter& json, std::string_view type) {
  constexpr std::string_view kOr = " or ";
  json.key("type").begin_array();
  while (true) {
    const size_t end = type.find(kOr);
    json.value(type.substr(0, end));
    if (end == std::string_view::npos) break;
    type.remove_prefix(end + kOr.size());
  }
  json.value("null").end_array();  // An explicit null counts as absent.
}

void write_body(JsonWriter& json, const std::vector<FieldDoc>& fields) {
  json.key("requestBody").begin_object().field("required", true);
  json.key("content").begin_object().key("application/json").begin_object();
  json.key("schema").begin_object().field("type", "object");
  json.key("properties").begin_object();
  for (const FieldDoc& field : fields) {
    if (field.treatment == Treatment::kRefused) continue;
    json.key(field.name).begin_object();
    write_type(json, field.type);
    const bool ignored = field.treatment == Treatment::kIgnored;
    json.field("description", std::string(field.help) + (ignored ? " Without effect." : ""));
    if (field.min < field.max && !ignored)
      json.field("minimum", field.min).field("maximum", field.max);
    json.end_object();
  }
  json.end_object().key("required").begin_array();
  for (const FieldDoc& field : fields)
    if (field.required) json.value(field.name);
  json.end_array().end_object().end_object().end_object().end_object();
}

void write_operation(JsonWriter& json, const EndpointDoc& endpoint) {
  std::string method(endpoint.method);
  std::ranges::transform(method, method.begin(),
                         [](char c) { return static_cast<char>(c - 'A' + 'a'); });
  json.key(method).begin_object().field("summary", endpoint.summary);
  if (endpoint.access == Access::kOpen) json.key("security").begin_array().end_array();
  if (const size_t open = endpoint.path.find('{'); open != std::string_view::npos) {
    const size_t close = endpoint.path.find('}', open);
    json.key("parameters").begin_array().begin_object();
    json.field("name", endpoint.path.substr(open + 1, close - open - 1)).field("in", "path");
    json.field("required", true).key("schema").begin_object().field("type", "string").end_object();
    json.end_object().end_array();
  }
  if (endpoint.fields) write_body(json, endpoint.fields());
  json.key("responses").begin_object();
  json.key("200").begin_object().field("description", "The answer.").end_object();
  json.key("default").begin_object().field("description", "An error.");
  json.key("content").begin_object().key("application/json").begin_object();
  json.key("schema").begin_object().field("$ref", "#/components/schemas/Error").end_object();
  json.end_object().end_object().end_object().end_object().end_object();
}

void write_components(JsonWriter& json) {
  json.key("components").begin_object().key("securitySchemes").begin_object();
  json.key("key").begin_object().field("type", "http").field("scheme", "bearer").end_object();
  json.end_object().key("schemas").begin_object().key("Error").raw(
      R"({"type":"object","required":["error"],"properties":{"error":{"type":"object",)"
      R"("required":["message","type","param","code"],"properties":{"message":{"type":"string"},)"
      R"("type":{"type":"string"},"param":{"type":["string","null"]},)"
      R"("code":{"type":["string","null"]}}}}})");
  json.end_object().end_object();
}

}  // namespace

std::string api_page(const std::vector<EndpointDoc>& endpoints) {
  std::string out =
      "# The API\n\nMade from the tables that route and parse; a test keeps them equal, and "
      "another asks "
      "a server what\nbecomes of each field. Fields that no table names are ignored, and the "
      "header "
      "`x-weir-ignored` of the answer\nnames them. An explicit `null` counts as absent.\n\n"
      "A field is *honoured*; *ignored* on purpose, whatever its value; or *refused*: a value that "
      "asks for something\nis a 400 that names the field. Errors are `{\"error\": {\"message\", "
      "\"type\", \"param\", \"code\"}}`. Where the server has\nkeys, each endpoint says which may "
      "use "
      "it.\n\n| endpoint | what it does | key |\n| --- | --- | --- |\n";
  for (const EndpointDoc& endpoint : endpoints)
    out.append("| `")
        .append(endpoint.method)
        .append(" ")
        .append(endpoint.path)
        .append("` | ")
        .append(cell(endpoint.summary))
        .append(" | ")
        .append(access_text(endpoint.access))
        .append(" |\n");
  for (const EndpointDoc& endpoint : endpoints)
    if (endpoint.fields) append_endpoint(out, endpoint);
  return out;
}

std::string openapi_json(const std::vector<EndpointDoc>& endpoints, std::string_view version) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("openapi", "3.1.0").key("info").begin_object();
  json.field("title", "Weir").field("version", version).end_object();
  json.key("security").begin_array().begin_object().key("key").begin_array().end_array();
  json.end_object().end_array().key("paths").begin_object();
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
  write_components(json);
  json.end_object();
  return out;
}

}  // namespace weir::api
