#include "api/request/json_fields.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

namespace weir::api {

namespace {

std::string number_text(double number) {
  char buffer[32];
  return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, number).ptr);
}

// An integer, also where it is written as 16.0.
std::optional<int64_t> exact_integer(JsonValue value) {
  int64_t integer = 0;
  if (value.get(integer) == simdjson::SUCCESS) return integer;
  double number = 0;
  if (value.type() == JsonType::DOUBLE && value.get(number) == simdjson::SUCCESS &&
      number == std::trunc(number) && std::abs(number) <= 0x1p53)
    return static_cast<int64_t>(number);
  return std::nullopt;
}

}  // namespace

std::string_view shown(std::string_view text) { return text.substr(0, 64); }

bool is_number(JsonValue value) {
  return value.type() == JsonType::INT64 || value.type() == JsonType::UINT64 ||
         value.type() == JsonType::DOUBLE;
}

tl::unexpected<Error> wrong_type(std::string_view path, std::string_view expected,
                                 JsonValue found) {
  return fail(ErrorCode::kInvalid,
              "Invalid type for '" + std::string(path) + "': expected " + std::string(expected) +
                  ", found " + json_type_name(found) + ".",
              std::string(path), "invalid_type");
}

tl::unexpected<Error> out_of_range(std::string_view path, const std::string& message) {
  return fail(ErrorCode::kInvalid,
              "Invalid value for '" + std::string(path) + "': " + message + ".", std::string(path),
              "invalid_value");
}

tl::unexpected<Error> missing(std::string_view path) {
  return fail(ErrorCode::kInvalid, "Missing required parameter: '" + std::string(path) + "'.",
              std::string(path), "missing_required_parameter");
}

tl::unexpected<Error> unsupported(std::string_view path, const std::string& message) {
  return fail(ErrorCode::kUnsupported, "Unsupported '" + std::string(path) + "': " + message + ".",
              std::string(path), "unsupported_parameter");
}

std::string join(std::string_view path, std::string_view key) {
  if (path.empty()) return std::string(key);
  return std::string(path).append(".").append(key);
}

std::string at(std::string_view path, size_t index) {
  return std::string(path).append("[").append(std::to_string(index)).append("]");
}

Result<JsonObject> as_object(std::string_view path, JsonValue value) {
  JsonObject object;
  if (value.get(object) != simdjson::SUCCESS) return wrong_type(path, "an object", value);
  return object;
}

Result<JsonArray> as_array(std::string_view path, JsonValue value) {
  JsonArray array;
  if (value.get(array) != simdjson::SUCCESS) return wrong_type(path, "an array", value);
  return array;
}

Result<std::string_view> as_string(std::string_view path, JsonValue value) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return wrong_type(path, "a string", value);
  return text;
}

Result<JsonObject> body_object(const JsonDoc& doc) {
  JsonObject object;
  if (doc.root().get(object) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, std::string("Invalid body: expected a JSON object, found ") +
                                         json_type_name(doc.root()) + ".");
  return object;
}

Result<JsonValue> required_member(std::string_view path, JsonObject object, std::string_view key) {
  const auto value = json_get(object, key);
  if (!value) return missing(join(path, key));
  return *value;
}

Result<std::string_view> required_string(std::string_view path, JsonObject object,
                                         std::string_view key) {
  WEIR_ASSIGN(const JsonValue value, required_member(path, object, key));
  return as_string(join(path, key), value);
}

Result<int64_t> integer_of(std::string_view path, JsonValue value) {
  if (const std::optional<int64_t> integer = exact_integer(value)) return *integer;
  uint64_t beyond = 0;
  if (value.type() == JsonType::UINT64 && value.get(beyond) == simdjson::SUCCESS)
    return out_of_range(path, "expected an integer up to " +
                                  std::to_string(std::numeric_limits<int64_t>::max()) + ", found " +
                                  std::to_string(beyond));
  return wrong_type(path, "an integer", value);
}

Result<void> check_range(std::string_view path, double number, double min, double max) {
  if (number >= min && number <= max) return {};
  return out_of_range(path, "expected a value from " + number_text(min) + " to " +
                                number_text(max) + ", found " + number_text(number));
}

}  // namespace weir::api
