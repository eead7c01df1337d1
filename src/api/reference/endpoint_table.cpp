// The table as a page for people: docs/api.md. For machines: reference/openapi.cpp.
#include "api/reference/endpoint_table.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "api/reference/reference.h"
#include "base/check.h"
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

std::string range_text(const FieldDoc& field) {
  if (field.min >= field.max) return {};
  if (field.max == reference::kInt64Max) return "64 bits";
  return number_text(field.min) + " to " + number_text(field.max);
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
    case Access::kAdmin:
      return "scope admin";
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

std::string name_of(const EndpointDoc& endpoint) {
  return std::string(endpoint.method) + " " + std::string(endpoint.path);
}

// The path with the example's id in it, or its query after it.
std::string target_of(const reference::Example& example) {
  std::string target(example.path);
  if (example.id.starts_with('?')) return target.append(example.id);
  if (const size_t open = target.find('{'); open != std::string::npos)
    target.replace(open, target.find('}') - open + 1, example.id);
  return target;
}

// A stream as it comes over the wire: lines, or events. Events with a type have it as their name,
// OpenAI's objects end with [DONE].
std::string stream_text(std::string_view events, bool lines) {
  const Result<JsonDoc> doc = JsonDoc::parse(events);
  JsonArray array;
  CHECK(doc && doc->root().get(array) == simdjson::SUCCESS);
  std::string out;
  for (const JsonValue event : array) {
    if (lines) {
      JsonWriter(out).value(event);
      out += '\n';
      continue;
    }
    std::string_view type;
    if (event["type"].get(type) == simdjson::SUCCESS) out.append("event: ").append(type) += '\n';
    out += "data: ";
    JsonWriter(out).value(event);
    out += "\n\n";
  }
  if (lines) return out;
  if (array.at(0)["object"].error() == simdjson::SUCCESS) out += "data: [DONE]\n\n";
  out.pop_back();  // The fence stands right below.
  return out;
}

// A form as a client sends it: each field is a part, the file's bytes are another.
void append_form(std::string& out, const reference::Example& example) {
  const Result<JsonDoc> doc = JsonDoc::parse(example.request);
  JsonObject fields;
  CHECK(doc && doc->root().get(fields) == simdjson::SUCCESS);
  out.append("curl http://localhost:8080").append(example.path);
  for (const auto [name, value] : fields) {
    std::string text;
    JsonWriter(text).value(value);
    if (text.starts_with('"')) text = text.substr(1, text.size() - 2);
    out.append(" \\\n  -F '").append(name).append("=");
    out.append(name == "file" ? "@" : "").append(text).append("'");
  }
  out += '\n';
}

void append_example(std::string& out, const EndpointDoc& endpoint,
                    const reference::Operation& operation, const reference::Example& example) {
  const bool stream = reference::asks_for_stream(example);
  out.append("\n").append(example.title).append(endpoint.form ? ":\n\n```sh\n" : ":\n\n```http\n");
  if (endpoint.form)
    append_form(out, example);
  else
    out.append(example.method).append(" ").append(target_of(example)).append("\n");
  if (!endpoint.form && !example.request.empty())
    out.append("\n").append(example.request).append("\n");
  const bool json = example.answer.starts_with('{') || example.answer.starts_with('[');
  out.append("```\n\n```").append(stream || !json ? "text" : "json").append("\n");
  if (stream)
    out += stream_text(example.answer, reference::streams_lines(operation));
  else
    out.append(example.answer).append("\n");
  out += "```\n";
}

void append_fields(std::string& out, const std::vector<FieldDoc>& fields) {
  out +=
      "\n| field | type | range | what becomes of it | meaning |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const FieldDoc& field : fields) {
    out.append("| `").append(field.name).append("` | ").append(cell(field.type)).append(" | ");
    out.append(range_text(field)).append(" | ").append(treatment_text(field)).append(" | ");
    out.append(cell(field.help)).append(" |\n");
  }
}

// Endpoints may share a table; `first` is the first that has it.
void append_endpoint(std::string& out, const EndpointDoc& endpoint, const EndpointDoc& first) {
  out.append("\n## ").append(name_of(endpoint)).append("\n\n");
  out.append(endpoint.summary).append(" Key: ").append(access_text(endpoint.access)).append(".\n");
  if (&first != &endpoint)
    out.append("Its fields are those of `").append(name_of(first)).append("`.\n");
  else if (endpoint.fields)
    append_fields(out, endpoint.fields());
  const reference::Operation* operation = reference::find_operation(endpoint.method, endpoint.path);
  CHECK(operation != nullptr);
  for (const reference::Example* example : reference::examples_of(*operation))
    append_example(out, endpoint, *operation, *example);
}

}  // namespace

std::string_view scope_of(Access access) {
  switch (access) {
    case Access::kOpen:
    case Access::kAnyKey:
      return {};
    case Access::kMonitor:
      return "monitor";
    case Access::kApi:
      return "api";
    case Access::kAdmin:
      return "admin";
  }
  return {};
}

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
      "it.\n\nWhat begins with `/v1` is there without it, too, but for `/completions`, which is "
      "llama-server's.\n\nExamples are answers of the built-in model. A stream that fails ends "
      "with an event "
      "that "
      "holds an error.\nClients can be generated from `/openapi.json`.\n\nOllama's endpoints "
      "(`/api`) say errors as `{\"error\": text}`, and stream lines of JSON.\n\n| endpoint | what "
      "it "
      "does | key |\n| --- | --- | --- |\n";
  for (const EndpointDoc& endpoint : endpoints)
    out.append("| `")
        .append(name_of(endpoint))
        .append("` | ")
        .append(cell(endpoint.summary))
        .append(" | ")
        .append(access_text(endpoint.access))
        .append(" |\n");
  for (const EndpointDoc& endpoint : endpoints) {
    const auto first = std::ranges::find(endpoints, endpoint.fields, &EndpointDoc::fields);
    append_endpoint(out, endpoint, endpoint.fields ? *first : endpoint);
  }
  return out;
}

}  // namespace weir::api
