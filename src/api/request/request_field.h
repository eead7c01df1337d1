// Field: one field of a body, as a row of a protocol's table. The table drives parsing; the
// reference page and /openapi.json are made from it.
//
// Threads: pure functions; tables are constant data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "api/reference/endpoint_table.h"
#include "api/request/generate_request.h"
#include "api/request/json_fields.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::api {

// What parsing needs to know of the model.
struct RequestLimits {
  int32_t vocab_size = 0;  // Token ids from 0 to this, exclusive.
};

// One field of a body. `path` names it in errors.
struct FieldInput {
  std::string_view path;
  JsonValue value;  // Not null.
  const RequestLimits& limits;
};

// What fills a part of any request, or of this protocol's own.
using FieldParser = Result<void> (*)(const FieldInput& in, GenerateRequest& out);
template <class Request>
using OwnFieldParser = Result<void> (*)(const FieldInput& in, Request& out);

// Where a value goes; monostate: accepted and ignored, whatever its type.
template <class Request>
using FieldTarget =
    std::variant<std::monostate, bool Request::*, std::optional<bool> Request::*,
                 std::optional<double> Request::*, std::optional<int64_t> Request::*,
                 std::string Request::*, std::optional<std::string> Request::*, FieldParser,
                 OwnFieldParser<Request>>;

// `Request`: a protocol's own type, which has GenerateRequest as its base.
template <class Request>
struct Field {
  std::string_view name;
  std::string_view type;  // As the reference names it.
  FieldTarget<Request> target;
  std::string_view help;
  double min = 0, max = 0;   // Of numbers, inclusive.
  uint8_t endpoints = 0xff;  // That know it: bits of the protocol's own.
  bool required = false;
};

// The empty value that clients send for "not used".
bool is_empty_value(JsonValue value);

// Refuses a value that asks for something.
Result<void> refuse(const FieldInput& in, GenerateRequest& out);

// A number of a type, within the range where there is one (`min` below `max`).
Result<bool> boolean_of(const FieldInput& in);
Result<double> number_of(const FieldInput& in, double min, double max);
Result<int64_t> count_of(const FieldInput& in, double min, double max);

// Puts a value where its field says.
template <class Request>
struct FieldStore {
  const Field<Request>& field;
  const FieldInput& in;
  Request& out;

  Result<void> operator()(std::monostate) const { return {}; }
  Result<void> operator()(FieldParser parser) const { return parser(in, out); }
  Result<void> operator()(OwnFieldParser<Request> parser) const { return parser(in, out); }
  template <class T>
  Result<void> operator()(T Request::*member) const {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::optional<bool>>) {
      WEIR_ASSIGN(out.*member, boolean_of(in));
      return {};
    } else if constexpr (std::is_same_v<T, std::optional<double>>) {
      WEIR_ASSIGN(out.*member, number_of(in, field.min, field.max));
      return {};
    } else if constexpr (std::is_same_v<T, std::optional<int64_t>>) {
      WEIR_ASSIGN(out.*member, count_of(in, field.min, field.max));
      return {};
    } else {
      WEIR_ASSIGN(const std::string_view text, as_string(in.path, in.value));
      out.*member = std::string(text);
      return {};
    }
  }
};

// The fields of a body that the table knows, in the table's order. `endpoints` picks rows.
template <class Fields, class Request>
Result<void> read_fields(const Fields& fields, uint8_t endpoints, JsonObject body,
                         const RequestLimits& limits, Request& out) {
  for (const Field<Request>& field : fields) {
    if (!(field.endpoints & endpoints)) continue;
    const std::optional<JsonValue> value = json_get(body, field.name);
    if (!value && field.required) return missing(field.name);
    if (!value) continue;
    const FieldInput in{field.name, *value, limits};
    WEIR_TRY(std::visit(FieldStore<Request>{field, in, out}, field.target));
  }
  return {};
}

template <class Request>
FieldDoc field_doc(const Field<Request>& field) {
  const auto* const parser = std::get_if<FieldParser>(&field.target);
  const Treatment treatment = std::holds_alternative<std::monostate>(field.target)
                                  ? Treatment::kIgnored
                              : parser && *parser == &refuse ? Treatment::kRefused
                                                             : Treatment::kHonoured;
  return {field.name, field.type, field.help, treatment, field.min, field.max, field.required};
}

// The table's rows for the reference.
template <class Fields>
std::vector<FieldDoc> field_docs(const Fields& fields, uint8_t endpoints) {
  std::vector<FieldDoc> docs;
  for (const auto& field : fields)
    if (field.endpoints & endpoints) docs.push_back(field_doc(field));
  return docs;
}

}  // namespace weir::api
