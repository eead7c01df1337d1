#include "api/request/structured_output.h"

#include <string>

#include "grammar/parts.h"

namespace weir::api {

namespace {

using grammar::GrammarSource;
using Kind = GrammarSource::Kind;

Result<void> bind(const std::string& path, GrammarSource source, GenerateRequest& out) {
  if (out.grammar)
    return out_of_range(path, "expected one constraint on the output, found another one in '" +
                                  out.grammar_field + "'");
  out.grammar = std::move(source);
  out.grammar_field = path;
  return {};
}

}  // namespace

// A schema, or its text.
Result<void> bind_schema(const std::string& path, JsonValue value, GenerateRequest& out) {
  GrammarSource source;
  source.kind = Kind::kJsonSchema;
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS)
    source.text = text;
  else if (value.is_object())
    JsonWriter(source.text).value(value);
  else
    return wrong_type(path, "a JSON schema (an object)", value);
  return bind(path, std::move(source), out);
}

Result<void> bind_object(const std::string& path, GenerateRequest& out) {
  return bind(path, GrammarSource{}, out);
}

namespace {

Result<void> bind_text(const std::string& path, JsonValue value, Kind kind, GenerateRequest& out) {
  WEIR_ASSIGN(const std::string_view text, as_string(path, value));
  if (text.empty()) return {};  // Clients send it for "not used".
  GrammarSource source;
  source.kind = kind;
  source.text = text;
  return bind(path, std::move(source), out);
}

Result<void> bind_choice(const std::string& path, JsonValue value, GenerateRequest& out) {
  JsonArray array;
  if (value.get(array) != simdjson::SUCCESS) return wrong_type(path, "an array of strings", value);
  if (array.size() == 0) return {};
  GrammarSource source;
  source.kind = Kind::kChoice;
  for (const JsonValue choice : array) {
    WEIR_ASSIGN(const std::string_view text, as_string(at(path, source.choices.size()), choice));
    source.choices.emplace_back(text);
  }
  return bind(path, std::move(source), out);
}

// OpenAI promises the schema for `strict: true` alone; without it the model does its best. Here an
// absent `strict` is as good as true, so that no schema is weakened unasked; one that says false
// gets what can be enforced, as functions do.
Result<void> bind_schema_of(const std::string& path, JsonObject object, const std::string& field,
                            JsonValue schema, GenerateRequest& out) {
  bool strict = true;
  if (const auto value = json_get(object, "strict");
      value && !value->is_null() && value->get(strict) != simdjson::SUCCESS)
    return wrong_type(path, "a boolean", *value);
  if (strict) return bind_schema(field, schema, out);
  std::string text;
  JsonWriter(text).value(schema);
  return bind(field, grammar::loose_schema(text, field), out);
}

Result<void> bind_named_schema(JsonObject format, GenerateRequest& out) {
  const auto named = json_get(format, "json_schema");
  if (!named) {
    const auto schema = json_get(format, "schema");  // llama.cpp's form.
    if (!schema) return missing("response_format.json_schema");
    return bind_schema("response_format.schema", *schema, out);
  }
  WEIR_ASSIGN(const JsonObject object, as_object("response_format.json_schema", *named));
  const auto schema = json_get(object, "schema");
  if (!schema) return missing("response_format.json_schema.schema");
  if (!schema->is_object())
    return wrong_type("response_format.json_schema.schema", "an object", *schema);
  return bind_schema_of("response_format.json_schema.strict", object,
                        "response_format.json_schema.schema", *schema, out);
}

}  // namespace

Result<void> parse_response_format(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonObject object, as_object(in.path, in.value));
  const auto type_value = json_get(object, "type");
  if (!type_value) return missing("response_format.type");
  WEIR_ASSIGN(const std::string_view type, as_string("response_format.type", *type_value));
  if (type == "text") return {};
  if (type == "json_schema") return bind_named_schema(object, out);
  if (type == "json_object") {
    if (const auto schema = json_get(object, "schema"))
      return bind_schema("response_format.schema", *schema, out);
    return bind_object("response_format", out);
  }
  return out_of_range(
      "response_format.type",
      "expected text, json_object or json_schema, found \"" + std::string(shown(type)) + "\"");
}

// {"format": {"type": "json_schema", "schema": ...}}: response_format without its inner object.
Result<void> parse_text_config(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonObject object, as_object(in.path, in.value));
  const auto value = json_get(object, "format");
  if (!value) return {};
  WEIR_ASSIGN(const JsonObject format, as_object("text.format", *value));
  const auto type_value = json_get(format, "type");
  if (!type_value) return missing("text.format.type");
  WEIR_ASSIGN(const std::string_view type, as_string("text.format.type", *type_value));
  if (type == "text") return {};
  if (type == "json_object") return bind_object("text.format", out);
  if (type != "json_schema")
    return out_of_range("text.format.type", "expected text, json_object or json_schema, found \"" +
                                                std::string(shown(type)) + "\"");
  const auto schema = json_get(format, "schema");
  if (!schema) return missing("text.format.schema");
  if (!schema->is_object()) return wrong_type("text.format.schema", "an object", *schema);
  return bind_schema_of("text.format.strict", format, "text.format.schema", *schema, out);
}

Result<void> parse_guided_json(const FieldInput& in, GenerateRequest& out) {
  std::string_view text;
  if (in.value.get(text) == simdjson::SUCCESS && text.empty()) return {};
  return bind_schema(std::string(in.path), in.value, out);
}

Result<void> parse_guided_regex(const FieldInput& in, GenerateRequest& out) {
  return bind_text(std::string(in.path), in.value, Kind::kRegex, out);
}

Result<void> parse_guided_choice(const FieldInput& in, GenerateRequest& out) {
  return bind_choice(std::string(in.path), in.value, out);
}

Result<void> parse_guided_grammar(const FieldInput& in, GenerateRequest& out) {
  return bind_text(std::string(in.path), in.value, Kind::kGrammar, out);
}

Result<void> parse_gbnf(const FieldInput& in, GenerateRequest& out) {
  return bind_text(std::string(in.path), in.value, Kind::kGbnf, out);
}

Result<void> parse_structured_outputs(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonObject object, as_object(in.path, in.value));
  for (const auto [key, value] : object) {
    const std::string path = std::string(in.path) + "." + std::string(shown(key));
    bool flag = false;
    if (value.is_null() || (value.get(flag) == simdjson::SUCCESS && !flag)) continue;
    if (key == "json") {
      WEIR_TRY(bind_schema(path, value, out));
    } else if (key == "regex") {
      WEIR_TRY(bind_text(path, value, Kind::kRegex, out));
    } else if (key == "choice") {
      WEIR_TRY(bind_choice(path, value, out));
    } else if (key == "grammar") {
      WEIR_TRY(bind_text(path, value, Kind::kGrammar, out));
    } else if (key == "json_object") {
      if (!value.is_bool()) return wrong_type(path, "a boolean", value);
      WEIR_TRY(bind_object(path, out));
    } else {
      return unsupported(path, "expected json, regex, choice, grammar or json_object");
    }
  }
  return {};
}

}  // namespace weir::api
