// A plain JSON Schema validator for tests, written from the specification and sharing nothing with
// the engine: the standard library for patterns, doubles for numbers. Drafts 4 to 2020-12, without
// formats, dynamic references and references to other documents.
#pragma once

#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/utf8.h"

namespace weir::grammar {

class JsonValidator {
 public:
  // `left_out`: keywords that need not hold, as the engine names them ("not at /properties/a"); a
  // oneOf among them is read as anyOf.
  explicit JsonValidator(JsonValue root, std::set<std::string> left_out = {})
      : root_(root), left_out_(std::move(left_out)) {}

  bool valid(JsonValue value) const { return valid(value, {root_, ""}); }

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

  struct Schema {
    JsonValue value;
    std::string place;  // Its JSON pointer.
  };
  static Schema below(const Schema& schema, std::string_view key, JsonValue value) {
    std::string place = schema.place + "/";
    for (const char c : key) c == '~' ? place += "~0" : c == '/' ? place += "~1" : place += c;
    return {value, place};
  }
  static Schema below(const Schema& schema, size_t index, JsonValue value) {
    return {value, schema.place + "/" + std::to_string(index)};
  }

  Schema resolve(std::string_view pointer) const {
    if (pointer == "#") return {root_, ""};
    if (pointer.starts_with("#/"))
      return {root_.at_pointer(pointer.substr(1)).value(), std::string(pointer.substr(1))};
    for (const auto [name, definition] : object_of(object_of(root_)["$defs"].value())) {
      const auto anchor = json_get(object_of(definition), "$anchor");
      if (anchor && anchor->get_string().value() == pointer.substr(1))
        return {definition, "/$defs/" + std::string(name)};
    }
    return {};
  }

  // The members of a schema that were looked at by it, or by one that it is made of and that holds.
  void note_evaluated(JsonValue v, const Schema& schema, std::set<std::string_view>& names) const {
    if (schema.value.is_bool() || !valid(v, schema)) return;
    const JsonObject object = object_of(schema.value);
    for (const auto [name, member] : object_of(v)) {
      const auto properties = json_get(object, "properties");
      JsonValue found;
      if (properties && object_of(*properties).at_key(name).get(found) == simdjson::SUCCESS)
        names.insert(name);
      if (const auto patterns = json_get(object, "patternProperties"))
        for (const auto [pattern, sub] : object_of(*patterns))
          if (found_in(name, pattern)) names.insert(name);
      if (json_get(object, "additionalProperties")) names.insert(name);
    }
    for (const char* list : {"allOf", "anyOf", "oneOf"})
      if (const auto parts = json_get(object, list)) {
        size_t i = 0;
        for (const JsonValue part : array_of(*parts))
          note_evaluated(v, below(below(schema, list, *parts), i++, part), names);
      }
    for (const char* one : {"if", "then", "else"})
      if (const auto part = json_get(object, one))
        note_evaluated(v, below(schema, one, *part), names);
    if (const auto reference = json_get(object, "$ref"))
      note_evaluated(v, resolve(reference->get_string().value()), names);
  }

  bool valid(JsonValue v, const Schema& schema) const {
    if (schema.value.is_bool()) return schema.value.get_bool().value_unsafe();
    if (!schema.value.is_object() || left_out_.contains("the schema at " + schema.place))
      return true;
    for (const auto [key, value] : object_of(schema.value)) {
      std::string at = schema.place;
      if (!at.empty()) at.insert(0, " at ");
      if (left_out_.contains(std::string(key) + at)) continue;
      const bool any = key == "oneOf" && left_out_.contains("oneOf (read as anyOf)" + at);
      if (!keyword_holds(v, any ? "anyOf" : key, value, schema)) return false;
    }
    return true;
  }

  int count_valid(JsonValue v, JsonValue schemas, const Schema& place) const {
    int count = 0;
    size_t i = 0;
    for (const JsonValue schema : array_of(schemas)) count += valid(v, below(place, i++, schema));
    return count;
  }

  bool keyword_holds(JsonValue v, std::string_view key, JsonValue k, const Schema& schema) const {
    const Schema here = below(schema, key, k);
    if (key == "$ref") return valid(v, resolve(k.get_string().value_unsafe()));
    if (key == "allOf") return count_valid(v, k, here) == static_cast<int>(array_of(k).size());
    if (key == "anyOf") {
      const Schema list =
          json_get(object_of(schema.value), "anyOf") ? here : below(schema, "oneOf", k);
      return count_valid(v, k, list) > 0;
    }
    if (key == "oneOf") return count_valid(v, k, here) == 1;
    if (key == "not") return !valid(v, here);
    if (key == "if") {
      const char* next = valid(v, here) ? "then" : "else";
      const auto then = json_get(object_of(schema.value), next);
      return !then || valid(v, below(schema, next, *then));
    }
    if (key == "const") return equal(v, k);
    if (key == "enum") {
      for (const JsonValue listed : array_of(k))
        if (equal(v, listed)) return true;
      return false;
    }
    if (key == "type") {
      const auto nullable = json_get(object_of(schema.value), "nullable");
      if (v.is_null() && nullable && nullable->get_bool().value_unsafe()) return true;
      if (k.is_string()) return has_type(v, k.get_string().value_unsafe());
      for (const JsonValue type : array_of(k))
        if (has_type(v, type.get_string().value_unsafe())) return true;
      return false;
    }
    if (is_number(v) && k.is_bool() && key.starts_with("exclusive") && k.get_bool().value_unsafe())
      return draft4_bound_holds(number_of(v), key, schema);
    if (is_number(v) && is_number(k)) return number_holds(number_of(v), key, number_of(k));
    if (v.is_string()) return string_holds(v.get_string().value_unsafe(), key, k);
    if (v.is_array()) return array_holds(array_of(v), key, k, schema);
    if (v.is_object()) return object_holds(v, key, k, schema);
    return true;
  }

  static bool draft4_bound_holds(double v, std::string_view key, const Schema& schema) {
    const bool is_min = key == "exclusiveMinimum";
    const auto bound = json_get(object_of(schema.value), is_min ? "minimum" : "maximum");
    return !bound || (is_min ? v > number_of(*bound) : v < number_of(*bound));
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

  static std::wstring wide(std::string_view text) {
    std::wstring out;
    for (size_t i = 0; i < text.size();) out += static_cast<wchar_t>(decode_utf8(text, i));
    return out;
  }
  static bool found_in(std::string_view text, std::string_view pattern) {
    static std::map<std::string, std::wregex, std::less<>> compiled;
    auto found = compiled.find(pattern);
    if (found == compiled.end())
      found = compiled.emplace(pattern, std::wregex(wide(pattern))).first;
    return std::regex_search(wide(text), found->second);
  }

  static bool string_holds(std::string_view v, std::string_view key, JsonValue k) {
    if (key == "minLength") return length_of(v) >= k.get_uint64().value();
    if (key == "maxLength") return length_of(v) <= k.get_uint64().value();
    if (key == "pattern") return found_in(std::string(v), k.get_string().value());
    return true;
  }

  bool array_holds(JsonArray v, std::string_view key, JsonValue k, const Schema& schema) const {
    if (key == "minItems") return v.size() >= k.get_uint64().value();
    if (key == "maxItems") return v.size() <= k.get_uint64().value();
    const Schema here = below(schema, key, k);
    if (key == "uniqueItems" && k.get_bool().value_unsafe()) {
      for (size_t i = 0; i < v.size(); ++i)
        for (size_t j = 0; j < i; ++j)
          if (equal(v.at(i).value(), v.at(j).value())) return false;
      return true;
    }
    if (key == "contains") {
      uint64_t least = 1, most = UINT64_MAX, count = 0;
      const JsonObject object = object_of(schema.value);
      if (const auto min = json_get(object, "minContains")) least = min->get_uint64().value();
      if (const auto max = json_get(object, "maxContains")) most = max->get_uint64().value();
      for (const JsonValue item : v) count += valid(item, here);
      return least <= count && count <= most;
    }
    const auto prefix = json_get(object_of(schema.value), "prefixItems");
    const size_t first = prefix ? array_of(*prefix).size() : 0;
    if (key == "items") {
      for (size_t i = first; i < v.size(); ++i)
        if (!valid(v.at(i).value(), here)) return false;
    }
    if (key == "prefixItems")
      for (size_t i = 0; i < std::min(first, v.size()); ++i)
        if (!valid(v.at(i).value(), below(here, i, array_of(k).at(i).value()))) return false;
    return true;
  }

  static bool has_all(JsonObject v, JsonValue names) {
    JsonValue found;
    for (const JsonValue name : array_of(names))
      if (v.at_key(name.get_string().value()).get(found) != simdjson::SUCCESS) return false;
    return true;
  }

  bool object_holds(JsonValue value, std::string_view key, JsonValue k,
                    const Schema& schema) const {
    const JsonObject v = object_of(value);
    const Schema here = below(schema, key, k);
    JsonValue found;
    if (key == "minProperties") return v.size() >= k.get_uint64().value();
    if (key == "maxProperties") return v.size() <= k.get_uint64().value();
    if (key == "required") return has_all(v, k);
    if (key == "dependentRequired" || key == "dependencies" || key == "dependentSchemas") {
      for (const auto [name, then] : object_of(k)) {
        if (v.at_key(name).get(found) != simdjson::SUCCESS) continue;
        if (then.is_array() ? !has_all(v, then) : !valid(value, below(here, name, then)))
          return false;
      }
      return true;
    }
    if (key == "propertyNames") {
      for (const auto [name, member] : v) {
        std::string text;
        append_json_string(text, name);
        const auto doc = JsonDoc::parse(text);
        if (!doc || !valid(doc->root(), here)) return false;
      }
      return true;
    }
    if (key == "properties") {
      for (const auto [name, sub] : object_of(k))
        if (v.at_key(name).get(found) == simdjson::SUCCESS && !valid(found, below(here, name, sub)))
          return false;
      return true;
    }
    if (key == "unevaluatedProperties") {
      std::set<std::string_view> names;
      auto others = left_out_;
      others.insert("unevaluatedProperties" + (schema.place.empty() ? "" : " at " + schema.place));
      JsonValidator(root_, std::move(others)).note_evaluated(value, schema, names);
      for (const auto [name, member] : v)
        if (!names.contains(name) && !valid(member, here)) return false;
      return true;
    }
    if (key != "additionalProperties" && key != "patternProperties") return true;
    const auto properties = json_get(object_of(schema.value), "properties");
    const auto patterns = json_get(object_of(schema.value), "patternProperties");
    for (const auto [name, member] : v) {
      bool known =
          properties && object_of(*properties).at_key(name).get(found) == simdjson::SUCCESS;
      if (patterns)
        for (const auto [pattern, sub] : object_of(*patterns))
          if (found_in(name, pattern)) {
            known = true;
            if (key == "patternProperties" && !valid(member, below(here, pattern, sub)))
              return false;
          }
      if (key == "additionalProperties" && !known && !valid(member, here)) return false;
    }
    return true;
  }

  JsonValue root_;
  std::set<std::string> left_out_;
};

}  // namespace weir::grammar
