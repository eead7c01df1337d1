#include "api/models/model_orders.h"

#include <algorithm>
#include <array>
#include <optional>

#include "api/request/json_fields.h"
#include "api/request/keep_alive.h"
#include "api/request/multipart.h"
#include "api/request/request_field.h"
#include "net/routes.h"

namespace weir::api {

namespace {

constexpr double kBytesMax = 1e15;
constexpr double kTokensMax = 1e9;

template <class Order>
struct Row {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  Result<void> (*read)(std::string_view path, JsonValue value, Order& out);
  bool required = false;
};

Result<int64_t> whole_number(std::string_view path, JsonValue value, double max) {
  const RequestLimits none;
  return count_of({path, value, none}, 0, max);
}

Result<bool> flag(std::string_view path, JsonValue value) {
  const RequestLimits none;
  return boolean_of({path, value, none});
}

template <class Order>
Result<void> read_model(std::string_view path, JsonValue value, Order& out) {
  WEIR_ASSIGN(const std::string_view name, as_string(path, value));
  out.model = std::string(name);
  return {};
}

constexpr auto kPullRows = std::to_array<Row<PullOrder>>({
    {"model", "string", "A model of the hub: org/name, or org/name:file.gguf.",
     &read_model<PullOrder>, true},
    {"revision", "string", "A branch, tag or commit, where the name says none.",
     [](std::string_view path, JsonValue value, PullOrder& out) -> Result<void> {
       WEIR_ASSIGN(const std::string_view revision, as_string(path, value));
       out.revision = std::string(revision);
       return {};
     }},
});

constexpr auto kLoadRows = std::to_array<Row<LoadOrder>>({
    {"model", "string", "An id or an alias of /v1/models.", &read_model<LoadOrder>, true},
    {"ctx_size", "integer", "Tokens of one sequence, instead of what the server's options say.",
     [](std::string_view path, JsonValue value, LoadOrder& out) -> Result<void> {
       WEIR_ASSIGN(const int64_t tokens, whole_number(path, value, kTokensMax));
       out.options.ctx_size = static_cast<int32_t>(tokens);
       return {};
     }},
    {"kv_memory", "integer", "Bytes for keys and values, likewise.",
     [](std::string_view path, JsonValue value, LoadOrder& out) -> Result<void> {
       WEIR_ASSIGN(out.options.kv_memory, whole_number(path, value, kBytesMax));
       return {};
     }},
    {"pin", "boolean", "true: it stays until it is unloaded.",
     [](std::string_view path, JsonValue value, LoadOrder& out) -> Result<void> {
       WEIR_ASSIGN(out.options.pin, flag(path, value));
       return {};
     }},
    {"keep_alive", "number or string",
     "How long it stays after its last use: seconds, or \"5m\"; negative: for ever.",
     [](std::string_view path, JsonValue value, LoadOrder& out) -> Result<void> {
       WEIR_ASSIGN(const double seconds, keep_alive_of(path, value));
       out.options.keep_alive = whole_seconds(seconds);
       return {};
     }},
});

constexpr auto kUnloadRows = std::to_array<Row<UnloadOrder>>({
    {"model", "string", "An id or an alias of /v1/models.", &read_model<UnloadOrder>, true},
    {"force", "boolean",
     "true: also one that is used; it takes no more requests, and goes when these are answered.",
     [](std::string_view path, JsonValue value, UnloadOrder& out) -> Result<void> {
       WEIR_ASSIGN(out.force, flag(path, value));
       return {};
     }},
});

template <class Order, class Rows>
Result<Order> parse(const Rows& rows, std::string_view body) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  Order order;
  for (const auto& row : rows) {
    const std::optional<JsonValue> value = json_get(object, row.name);
    if (!value && row.required) return missing(row.name);
    if (value) WEIR_TRY(row.read(row.name, *value, order));
  }
  return order;
}

template <class Rows>
std::vector<FieldDoc> docs_of(const Rows& rows) {
  std::vector<FieldDoc> docs;
  for (const auto& row : rows)
    docs.push_back(
        {.name = row.name, .type = row.type, .help = row.help, .required = row.required});
  return docs;
}

}  // namespace

// "org/name:file" becomes "org/name@revision:file".
std::string PullOrder::name() const {
  if (revision.empty()) return model;
  const size_t end = std::min(model.find(':'), model.size());
  return model.substr(0, end) + "@" + revision + model.substr(end);
}

Result<PullOrder> parse_pull(std::string_view body) { return parse<PullOrder>(kPullRows, body); }

Result<LoadOrder> parse_load(std::string_view body) { return parse<LoadOrder>(kLoadRows, body); }

Result<UnloadOrder> parse_unload(std::string_view body) {
  return parse<UnloadOrder>(kUnloadRows, body);
}

std::vector<FieldDoc> pull_fields() { return docs_of(kPullRows); }

std::vector<FieldDoc> load_fields() { return docs_of(kLoadRows); }

std::vector<FieldDoc> unload_fields() { return docs_of(kUnloadRows); }

Result<AskedModel> model_of_body(std::string_view body) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  AskedModel asked;
  if (const auto model = json_get(object, "model")) {
    WEIR_ASSIGN(const std::string_view name, as_string("model", *model));
    asked.name = std::string(name);
  }
  if (const auto stream = json_get(object, "stream"))
    if (stream->get(asked.stream) != simdjson::SUCCESS) asked.stream = false;
  return asked;
}

Result<AskedModel> model_of_form(std::string_view content_type, std::string_view body) {
  WEIR_ASSIGN(const std::vector<FormPart> parts, read_multipart(content_type, body));
  AskedModel asked;
  for (const FormPart& part : parts) {
    if (part.name == "model") asked.name = part.bytes;
    if (part.name == "stream") asked.stream = part.bytes == "true" || part.bytes == "1";
  }
  return asked;
}

std::string query_value(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const size_t equals = std::min(pair.find('='), pair.size());
    std::string value;
    if (pair.substr(0, equals) == name && equals < pair.size() &&
        net::percent_decode(pair.substr(equals + 1), value))
      return value;
  }
  return {};
}

}  // namespace weir::api
