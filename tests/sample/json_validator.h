// A plain JSON Schema validator for tests, written from the specification and sharing nothing with
// the engine: the C library for patterns, doubles for numbers.
#pragma once

#include <regex.h>

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weir::sample::grammar {

class JsonValidator {
 public:
  explicit JsonValidator(JsonValue root) : root_(root) {}

  bool valid(JsonValue value) const { return valid(value, root_); }

 private:
  // By value, so that a loop over one keeps it alive.
  static JsonObject object_of(JsonValue value) { return value.get_object().value_unsafe(); }
  static JsonArray array_of(JsonValue value) { return value.get_array().value_unsafe(); }
  static std::string text_of(JsonValue value) {
    std::string text;
    JsonWriter(text).value(value);
    return text;
  }
  static bool is_number(JsonValue v) {
    return v.type() == JsonType::INT64 || v.type() == JsonType::UINT64 ||
           v.type() == JsonType::DOUBLE;
  }
  static double number_of(JsonValue v) { return v.get_double().value_unsafe(); }
  static bool equal(JsonValue a, JsonValue b) {
    if (is_number(a) && is_number(b)) return number_of(a) == number_of(b);
    if (a.is_object() && b.is_object()) {
      const JsonObject x = object_of(a), y = object_of(b);
      if (x.size() != y.size()) return false;
      for (const auto [key, member] : x) {
        JsonValue other;
        if (y.at_key(key).get(other) != simdjson::SUCCESS || !equal(member, other)) return false;
      }
      return true;
    }
    if (a.is_array() && b.is_array()) {
      const JsonArray x = array_of(a), y = array_of(b);
      if (x.size() != y.size()) return false;
      for (size_t i = 0; i < x.size(); ++i)
        if (!equal(x.at(i).value_unsafe(), y.at(i).value_unsafe())) return false;
      return true;
    }
    return text_of(a) == text_of(b);
  }
  static size_t length_of(std::string_view text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    }));
  }
  static bool has_type(JsonValue v, std::string_view type) {
    if (type == "null") return v.is_null();
    if (type == "boolean") return v.is_bool();
    if (type == "string") return v.is_string();
    if (type == "array") return v.is_array();
    if (type == "object") return v.is_object();
    if (type == "number") return is_number(v);
    return is_number(v) && number_of(v) == std::trunc(number_of(v));
  }

  JsonValue resolve(std::string_view pointer) const {
    if (pointer == "#") return root_;
    if (pointer.starts_with("#/")) return root_.at_pointer(pointer.substr(1)).value();
    for (const auto [name, definition] : object_of(object_of(root_)["$defs"].value())) {
      const auto anchor = json_get(object_of(definition), "$anchor");
      if (anchor && anchor->get_string().value() == pointer.substr(1)) return definition;
    }
    return JsonValue();
  }

  bool valid(JsonValue v, JsonValue schema) const {
    if (schema.is_bool()) return schema.get_bool().value_unsafe();
    for (const auto [key, value] : object_of(schema))
      if (!keyword_holds(v, key, value, object_of(schema))) return false;
    return true;
  }

  int count_valid(JsonValue v, JsonValue schemas) const {
    int count = 0;
    for (const JsonValue schema : array_of(schemas)) count += valid(v, schema);
    return count;
  }

  bool keyword_holds(JsonValue v, std::string_view key, JsonValue k, JsonObject schema) const {
    if (key == "$ref") return valid(v, resolve(k.get_string().value_unsafe()));
    if (key == "allOf") return count_valid(v, k) == static_cast<int>(array_of(k).size());
    if (key == "anyOf") return count_valid(v, k) > 0;
    if (key == "oneOf") return count_valid(v, k) == 1;
    if (key == "const") return equal(v, k);
    if (key == "enum") {
      for (const JsonValue listed : array_of(k))
        if (equal(v, listed)) return true;
      return false;
    }
    if (key == "type") {
      if (k.is_string()) return has_type(v, k.get_string().value_unsafe());
      for (const JsonValue type : array_of(k))
        if (has_type(v, type.get_string().value_unsafe())) return true;
      return false;
    }
    if (is_number(v) && is_number(k)) return number_holds(number_of(v), key, number_of(k));
    if (v.is_string()) return string_holds(v.get_string().value_unsafe(), key, k);
    if (v.is_array()) return array_holds(array_of(v), key, k, schema);
    if (v.is_object()) return object_holds(object_of(v), key, k, schema);
    return true;
  }

  static bool number_holds(double v, std::string_view key, double k) {
    if (key == "minimum") return v >= k;
    if (key == "maximum") return v <= k;
    if (key == "exclusiveMinimum") return v > k;
    if (key == "exclusiveMaximum") return v < k;
    if (key == "multipleOf") {
      const double ratio = v / k;
      return std::abs(ratio - std::round(ratio)) < 1e-9 * std::max(1.0, std::abs(ratio));
    }
    return true;
  }

  // POSIX knows what the generator's patterns use, but for \d.
  static bool found_in(const std::string& text, std::string_view pattern) {
    std::string posix(pattern);
    for (size_t at = 0; (at = posix.find("\\d", at)) != std::string::npos;)
      posix.replace(at, 2, "[0-9]");
    regex_t expected{};
    if (regcomp(&expected, posix.c_str(), REG_EXTENDED | REG_NOSUB) != 0) return false;
    const bool found = regexec(&expected, text.c_str(), 0, nullptr, 0) == 0;
    regfree(&expected);
    return found;
  }

  static bool string_holds(std::string_view v, std::string_view key, JsonValue k) {
    if (key == "minLength") return length_of(v) >= k.get_uint64().value();
    if (key == "maxLength") return length_of(v) <= k.get_uint64().value();
    if (key == "pattern") return found_in(std::string(v), k.get_string().value());
    return true;
  }

  bool array_holds(JsonArray v, std::string_view key, JsonValue k, JsonObject schema) const {
    if (key == "minItems") return v.size() >= k.get_uint64().value();
    if (key == "maxItems") return v.size() <= k.get_uint64().value();
    const auto prefix = json_get(schema, "prefixItems");
    const size_t first = prefix ? array_of(*prefix).size() : 0;
    if (key == "items") {
      for (size_t i = first; i < v.size(); ++i)
        if (!valid(v.at(i).value(), k)) return false;
    }
    if (key == "prefixItems")
      for (size_t i = 0; i < std::min(first, v.size()); ++i)
        if (!valid(v.at(i).value(), array_of(k).at(i).value())) return false;
    return true;
  }

  bool object_holds(JsonObject v, std::string_view key, JsonValue k, JsonObject schema) const {
    JsonValue found;
    if (key == "minProperties") return v.size() >= k.get_uint64().value();
    if (key == "maxProperties") return v.size() <= k.get_uint64().value();
    if (key == "required") {
      for (const JsonValue name : array_of(k))
        if (v.at_key(name.get_string().value()).get(found) != simdjson::SUCCESS) return false;
      return true;
    }
    if (key == "dependentRequired") {
      for (const auto [name, names] : object_of(k))
        if (v.at_key(name).get(found) == simdjson::SUCCESS &&
            !object_holds(v, "required", names, schema))
          return false;
      return true;
    }
    if (key == "properties") {
      for (const auto [name, sub] : object_of(k))
        if (v.at_key(name).get(found) == simdjson::SUCCESS && !valid(found, sub)) return false;
      return true;
    }
    if (key != "additionalProperties" && key != "patternProperties") return true;
    const auto properties = json_get(schema, "properties");
    const auto patterns = json_get(schema, "patternProperties");
    for (const auto [name, member] : v) {
      bool known =
          properties && object_of(*properties).at_key(name).get(found) == simdjson::SUCCESS;
      if (patterns)
        for (const auto [pattern, sub] : object_of(*patterns))
          if (found_in(std::string(name), pattern)) {
            known = true;
            if (key == "patternProperties" && !valid(member, sub)) return false;
          }
      if (key == "additionalProperties" && !known && !valid(member, k)) return false;
    }
    return true;
  }

  JsonValue root_;
};

}  // namespace weir::sample::grammar
