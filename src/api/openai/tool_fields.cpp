#include "api/openai/tool_fields.h"

#include <utility>

namespace weir::api::openai {

namespace {

// {"type": "function", "function": {"name": ...}}, also without the inner object.
Result<std::string> chosen_name(const std::string& path, JsonObject object) {
  const auto function = json_get(object, "function");
  if (!function) {
    WEIR_ASSIGN(const std::string_view name, required_string(path, object, "name"));
    return std::string(name);
  }
  WEIR_ASSIGN(const JsonObject inner, as_object(join(path, "function"), *function));
  WEIR_ASSIGN(const std::string_view name, required_string(join(path, "function"), inner, "name"));
  return std::string(name);
}

// Fills `callable` with those of the allowed tools that are functions.
Result<void> parse_allowed_tools(JsonObject choice, const ChoiceReader& names_of,
                                 GenerateRequest& out) {
  const std::string path = "tool_choice.allowed_tools";
  JsonObject allowed = choice;  // Responses has it without the inner object.
  if (const auto inner = json_get(choice, "allowed_tools")) {
    WEIR_ASSIGN(allowed, as_object(path, *inner));
  }
  WEIR_ASSIGN(const std::string_view mode, required_string(path, allowed, "mode"));
  if (mode != "auto" && mode != "required")
    return out_of_range(join(path, "mode"),
                        "expected auto or required, found \"" + std::string(shown(mode)) + "\"");
  out.tool_choice = mode == "auto" ? ToolChoice::kAuto : ToolChoice::kRequired;
  const auto tools = json_get(allowed, "tools");
  if (!tools) return missing(join(path, "tools"));
  WEIR_ASSIGN(const JsonArray array, as_array(join(path, "tools"), *tools));
  WEIR_TRY(check_tool_count(join(path, "tools"), array.size()));
  if (array.size() == 0)
    return out_of_range(join(path, "tools"), "expected at least one tool, found none");
  size_t index = 0;
  for (const JsonValue element : array) {
    const std::string tool_path = at(join(path, "tools"), index++);
    WEIR_ASSIGN(const JsonObject tool, as_object(tool_path, element));
    WEIR_ASSIGN(const std::vector<std::string> names, names_of(tool_path, tool));
    out.callable.insert(out.callable.end(), names.begin(), names.end());
  }
  // All of them were left out: there is nothing to call.
  if (out.callable.empty()) out.tool_choice = ToolChoice::kNone;
  return {};
}

Result<void> parse_choice_word(const FieldInput& in, std::string_view word, GenerateRequest& out) {
  if (word == "none")
    out.tool_choice = ToolChoice::kNone;
  else if (word == "required" || word == "any")  // "any" is Mistral's word.
    out.tool_choice = ToolChoice::kRequired;
  else if (word != "auto")
    return out_of_range(in.path, "expected none, auto, required or a named function, found \"" +
                                     std::string(shown(word)) + "\"");
  return {};
}

}  // namespace

Result<ToolFunction> function_of(const std::string& path, JsonValue value) {
  WEIR_ASSIGN(const JsonObject object, as_object(path, value));
  WEIR_ASSIGN(const std::string_view name, required_string(path, object, "name"));
  WEIR_TRY(check_function_name(join(path, "name"), name));
  ToolFunction function;
  function.name = name;
  function.field = join(path, "parameters");
  if (const auto parameters = json_get(object, "parameters")) {
    WEIR_TRY(as_object(function.field, *parameters));
    JsonWriter(function.parameters).value(*parameters);
  }
  if (const auto strict = json_get(object, "strict");
      strict && strict->get(function.strict) != simdjson::SUCCESS)
    return wrong_type(join(path, "strict"), "a boolean", *strict);
  return function;
}

Result<void> parse_tools(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonArray tools, as_array(in.path, in.value));
  if (tools.size() == 0) return {};
  WEIR_TRY(check_tool_count(in.path, tools.size()));
  size_t index = 0;
  for (const JsonValue element : tools) {
    const std::string path = at(in.path, index++);
    WEIR_ASSIGN(const JsonObject tool, as_object(path, element));
    WEIR_ASSIGN(const std::string_view type, required_string(path, tool, "type"));
    if (type != "function")
      return unsupported(join(path, "type"),
                         "expected \"function\", found \"" + std::string(shown(type)) + "\"");
    const auto function = json_get(tool, "function");
    if (!function) return missing(join(path, "function"));
    WEIR_ASSIGN(ToolFunction parsed, function_of(join(path, "function"), *function));
    out.functions.push_back(std::move(parsed));
  }
  JsonWriter(out.tools).value(in.value);
  return {};
}

Result<void> parse_choice(const FieldInput& in, const ChoiceReader& names_of,
                          GenerateRequest& out) {
  std::string_view word;
  if (in.value.get(word) == simdjson::SUCCESS) return parse_choice_word(in, word, out);
  JsonObject object;
  if (in.value.get(object) != simdjson::SUCCESS)
    return wrong_type(in.path, "a string or an object", in.value);
  WEIR_ASSIGN(const std::string_view type, required_string(in.path, object, "type"));
  if (type == "allowed_tools") return parse_allowed_tools(object, names_of, out);
  WEIR_ASSIGN(out.callable, names_of(std::string(in.path), object));
  if (!out.callable.empty())
    out.tool_choice = out.callable.size() == 1 ? ToolChoice::kNamed : ToolChoice::kRequired;
  return {};
}

Result<void> parse_tool_choice(const FieldInput& in, GenerateRequest& out) {
  const auto names_of = [](const std::string& path,
                           JsonObject tool) -> Result<std::vector<std::string>> {
    std::string_view type = "function";
    if (const auto value = json_get(tool, "type")) {
      WEIR_ASSIGN(type, as_string(join(path, "type"), *value));
    }
    if (type != "function")
      return unsupported(
          join(path, "type"),
          "expected \"function\" or \"allowed_tools\", found \"" + std::string(shown(type)) + "\"");
    WEIR_ASSIGN(std::string name, chosen_name(path, tool));
    return std::vector{std::move(name)};
  };
  return parse_choice(in, names_of, out);
}

Result<void> parse_functions(const FieldInput& in, Request& out) {
  WEIR_ASSIGN(const JsonArray functions, as_array(in.path, in.value));
  if (functions.size() == 0) return {};
  if (!out.functions.empty())
    return out_of_range(in.path, "expected one of tools and functions, found both");
  WEIR_TRY(check_tool_count(in.path, functions.size()));
  JsonWriter json(out.tools);
  json.begin_array();
  size_t index = 0;
  for (const JsonValue element : functions) {
    WEIR_ASSIGN(ToolFunction parsed, function_of(at(in.path, index++), element));
    out.functions.push_back(std::move(parsed));
    json.begin_object().field("type", "function").field("function", element).end_object();
  }
  json.end_array();
  out.legacy_functions = true;
  out.parallel_tool_calls = false;  // An answer has room for one.
  return {};
}

Result<void> parse_function_call(const FieldInput& in, GenerateRequest& out) {
  std::string_view word;
  if (in.value.get(word) == simdjson::SUCCESS) return parse_choice_word(in, word, out);
  WEIR_ASSIGN(const JsonObject object, as_object(in.path, in.value));
  if (object.size() == 0) return {};
  WEIR_ASSIGN(const std::string_view name, required_string(in.path, object, "name"));
  out.tool_choice = ToolChoice::kNamed;
  out.callable.emplace_back(name);
  return {};
}

}  // namespace weir::api::openai
