// JSON in and out: JsonDoc over simdjson's DOM (strict, whole document checked), JsonWriter to a
// string. The only file through which others see simdjson.
//
// Threads: a JsonDoc and its views belong to one thread at a time.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir {

// A parsed document. Views into it (JsonValue, string_views) live as long as it does.
using JsonValue = simdjson::dom::element;
using JsonObject = simdjson::dom::object;
using JsonArray = simdjson::dom::array;
using JsonType = simdjson::dom::element_type;

class JsonDoc {
 public:
  // Copies `text` (simdjson needs padding). The error says what is wrong and about where.
  // Nesting deeper than `depth_max` is refused.
  static Result<JsonDoc> parse(std::string_view text, size_t depth_max = 256);

  JsonValue root() const { return root_; }

 private:
  std::unique_ptr<simdjson::dom::parser> parser_;
  JsonValue root_;
};

// "string", "number", ... as JSON names them; for messages.
const char* json_type_name(JsonValue value);

// The value as compact JSON, cut to a length that a message bears.
std::string json_excerpt(JsonValue value);

// The member of an object, if it is there and not null. The first of duplicate keys wins.
std::optional<JsonValue> json_get(JsonObject object, std::string_view key);

// Appends `text` as a JSON string with its quotes. Invalid UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

// Appends compact JSON. The caller keeps objects and arrays balanced; commas are the writer's.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& value(int64_t number);
  JsonWriter& value(int32_t number) { return value(static_cast<int64_t>(number)); }
  JsonWriter& value(uint64_t number);
  // Shortest text that reads back equal; infinities and NaN become null.
  JsonWriter& value(double number);
  JsonWriter& value(float number);
  JsonWriter& null();
  // A value that is JSON already.
  JsonWriter& raw(std::string_view json);
  // A parsed value, written back compactly.
  JsonWriter& value(JsonValue parsed);

  template <class T>
  JsonWriter& field(std::string_view name, T&& v) {
    key(name);
    return value(std::forward<T>(v));
  }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  std::string& out_;
  bool needs_comma_ = false;
};

}  // namespace weir
