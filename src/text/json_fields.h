// JsonFields: the members of one JSON object of tokenizer.json with their types checked. The first
// error is kept, so that readers are straight lines: read everything, then ask status().
//
// Settings beside the weights are read by card::ConfigReader, which remembers what was read, gives
// copies and has memory of its own. A tokenizer has thousands of objects (added tokens, parts of
// templates, patterns) whose unknown members mean nothing: here a reader is a view of one of them.
//
// Threads: one; a reader and the document belong together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/result.h"

namespace weir::text {

class JsonFields {
 public:
  // `where` names the object in messages: "tokenizer.json: pre_tokenizer".
  JsonFields(JsonValue value, std::string where) : where_(std::move(where)) {
    if (value.get(object_) == simdjson::SUCCESS) {
      valid_ = true;
    } else {
      keep(where_ + ": expected an object, found " + json_type_name(value));
    }
  }

  JsonFields(JsonObject object, std::string where)
      : object_(object), valid_(true), where_(std::move(where)) {}

  // Null counts as absent everywhere.
  std::optional<JsonValue> value(std::string_view key) const {
    return valid_ ? json_get(object_, key) : std::nullopt;
  }

  std::string_view text(std::string_view key) {
    return read<std::string_view>(key, "a string", {});
  }
  std::string_view text(std::string_view key, std::string_view absent) {
    return read<std::string_view>(key, "a string", absent);
  }
  bool flag(std::string_view key, bool absent) { return read<bool>(key, "a boolean", absent); }
  int64_t integer(std::string_view key) { return read<int64_t>(key, "an integer", {}); }
  int64_t integer(std::string_view key, int64_t absent) {
    return read<int64_t>(key, "an integer", absent);
  }
  JsonArray array(std::string_view key) { return read<JsonArray>(key, "an array", {}); }
  JsonObject object(std::string_view key) { return read<JsonObject>(key, "an object", {}); }

  const std::string& where() const { return where_; }
  Result<void> status() const {
    if (error_.empty()) return {};
    return fail(ErrorCode::kConfig, error_);
  }

 private:
  void keep(std::string message) {
    if (error_.empty()) error_ = std::move(message);
  }

  template <class T>
  T read(std::string_view key, const char* type, std::optional<T> absent) {
    const std::optional<JsonValue> found = value(key);
    T result{};
    if (!found) {
      if (absent) return *absent;
      keep(where_ + "." + std::string(key) + ": expected " + type + ", found nothing");
    } else if (found->get(result) != simdjson::SUCCESS) {
      keep(where_ + "." + std::string(key) + ": expected " + type + ", found " +
           json_type_name(*found));
    }
    return result;
  }

  JsonObject object_;
  bool valid_ = false;
  std::string where_;
  std::string error_;
};

}  // namespace weir::text
