// The fields that speak of functions, in Anthropic's form: tools and tool_choice.
#include "api/anthropic/message_request.h"

namespace weir::api::anthropic {

namespace {

// Tools of other types are run by Anthropic's servers, or are known to its models alone.
Result<void> check_type(const std::string& path, JsonObject tool) {
  const auto value = json_get(tool, "type");
  if (!value) return {};
  WEIR_ASSIGN(const std::string_view type, as_string(join(path, "type"), *value));
  if (type == "custom") return {};
  return unsupported(join(path, "type"),
                     "expected \"custom\", a function with an input_schema; this server has no "
                     "tools of its own, found \"" +
                         std::string(shown(type)) + "\"");
}

Result<void> write_tool(const std::string& path, JsonValue element, JsonWriter& json,
                        GenerateRequest& out) {
  WEIR_ASSIGN(const JsonObject tool, as_object(path, element));
  WEIR_TRY(check_type(path, tool));
  ToolFunction function;
  WEIR_ASSIGN(function.name, required_string(path, tool, "name"));
  WEIR_TRY(check_function_name(join(path, "name"), function.name));
  WEIR_ASSIGN(const JsonValue schema, required_member(path, tool, "input_schema"));
  function.field = join(path, "input_schema");
  WEIR_TRY(as_object(function.field, schema));
  JsonWriter(function.parameters).value(schema);
  if (const auto strict = json_get(tool, "strict");
      strict && strict->get(function.strict) != simdjson::SUCCESS)
    return wrong_type(join(path, "strict"), "a boolean", *strict);

  json.begin_object().field("type", "function").key("function").begin_object();
  json.field("name", function.name);
  if (const auto description = json_get(tool, "description")) {
    WEIR_ASSIGN(const std::string_view text, as_string(join(path, "description"), *description));
    json.field("description", text);
  }
  json.key("parameters").raw(function.parameters);
  json.end_object().end_object();
  out.functions.push_back(std::move(function));
  return {};
}

}  // namespace

Result<void> parse_message_tools(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonArray tools, as_array(in.path, in.value));
  if (tools.size() == 0) return {};
  WEIR_TRY(check_tool_count(in.path, tools.size()));
  JsonWriter json(out.tools);
  json.begin_array();
  size_t index = 0;
  for (const JsonValue tool : tools) WEIR_TRY(write_tool(at(in.path, index++), tool, json, out));
  json.end_array();
  return {};
}

Result<void> parse_message_tool_choice(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonObject choice, as_object(in.path, in.value));
  WEIR_ASSIGN(const std::string_view type, required_string(in.path, choice, "type"));
  if (const auto value = json_get(choice, "disable_parallel_tool_use")) {
    bool disable = false;
    if (value->get(disable) != simdjson::SUCCESS)
      return wrong_type(join(in.path, "disable_parallel_tool_use"), "a boolean", *value);
    out.parallel_tool_calls = !disable;
  }
  if (type == "none") {
    out.tool_choice = ToolChoice::kNone;
  } else if (type == "any") {
    out.tool_choice = ToolChoice::kRequired;
  } else if (type == "tool") {
    WEIR_ASSIGN(const std::string_view name, required_string(in.path, choice, "name"));
    out.tool_choice = ToolChoice::kNamed;
    out.callable.emplace_back(name);
  } else if (type != "auto") {
    return out_of_range(join(in.path, "type"), "expected auto, any, tool or none, found \"" +
                                                   std::string(shown(type)) + "\"");
  }
  return {};
}

}  // namespace weir::api::anthropic
