#include "api/responses/tools.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/openai/tool_fields.h"

namespace weir::api::responses {

namespace {

using grammar::GrammarSource;

// Between a namespace and a name, as agents have always joined them.
constexpr std::string_view kJoint = "__";

constexpr std::string_view kInputSchema =
    R"({"type":"object","properties":{"input":{"type":"string"}},"required":["input"],)"
    R"("additionalProperties":false})";

// Tools that OpenAI's servers or models bring along. They have versions ("web_search_preview").
constexpr auto kVendorTools = std::to_array<std::string_view>(
    {"web_search", "file_search", "code_interpreter", "image_generation", "computer", "mcp",
     "local_shell", "shell", "apply_patch", "tool_search"});

bool is_vendor_tool(std::string_view type) {
  return std::ranges::any_of(kVendorTools,
                             [&](std::string_view name) { return type.starts_with(name); });
}

// A namespace that is being read.
struct Space {
  std::string name;
  std::string description;  // Goes before its first function's, because templates know no other.
};

class ToolsReader {
 public:
  explicit ToolsReader(GenerateRequest& out) : out_(out), json_(out.tools) {}

  Result<void> tools(std::string_view path, JsonValue value, Space* space) {
    WEIR_ASSIGN(const JsonArray array, as_array(path, value));
    WEIR_TRY(check_tool_count(path, array.size()));
    size_t index = 0;
    for (const JsonValue element : array) WEIR_TRY(tool(at(path, index++), element, space));
    return check_tool_count(path, out_.functions.size());
  }

  void finish() {
    if (!out_.functions.empty()) json_.end_array();
  }

 private:
  Result<void> tool(const std::string& path, JsonValue element, Space* space) {
    WEIR_ASSIGN(const JsonObject object, as_object(path, element));
    WEIR_ASSIGN(const std::string_view type, required_string(path, object, "type"));
    if (type == "function" || type == "custom") {
      WEIR_ASSIGN(ToolFunction parsed, openai::function_of(path, element));
      return type == "custom" ? custom(path, object, space, std::move(parsed))
                              : function(path, object, space, std::move(parsed));
    }
    if (type == "namespace" && !space) return name_space(path, object);
    // Of an unknown kind, what describes a function is one that was misspelled.
    if (!is_vendor_tool(type) && (json_get(object, "parameters") || type == "namespace"))
      return unsupported(join(path, "type"),
                         "expected \"function\", \"custom\" or \"namespace\", found \"" +
                             std::string(shown(type)) + "\"");
    out_.ignored.add(path + ": " + std::string(shown(type)));
    return {};
  }

  Result<void> name_space(const std::string& path, JsonObject object) {
    Space space;
    WEIR_ASSIGN(space.name, required_string(path, object, "name"));
    WEIR_TRY(check_function_name(join(path, "name"), space.name));
    if (const auto description = json_get(object, "description")) {
      WEIR_ASSIGN(space.description, as_string(join(path, "description"), *description));
    }
    WEIR_ASSIGN(const JsonValue inner, required_member(path, object, "tools"));
    return tools(join(path, "tools"), inner, &space);
  }

  Result<void> function(const std::string& path, JsonObject object, Space* space,
                        ToolFunction function) {
    WEIR_TRY(begin(path, object, space, function));
    for (const auto [key, value] : object)
      if (key != "type" && key != "name" && key != "description") json_.field(key, value);
    end(std::move(function));
    return {};
  }

  Result<void> custom(const std::string& path, JsonObject object, Space* space,
                      ToolFunction function) {
    function.custom = true;
    function.parameters = kInputSchema;
    WEIR_ASSIGN(const std::string notation, input_format(path, object, function));
    WEIR_TRY(begin(path, object, space, function, notation));
    json_.key("parameters").raw(kInputSchema);
    end(std::move(function));
    return {};
  }

  // What binds a custom tool's input; returns what the model is told of it.
  Result<std::string> input_format(const std::string& tool_path, JsonObject tool,
                                   ToolFunction& function) {
    const std::string path = join(tool_path, "format");
    const auto value = json_get(tool, "format");
    if (!value) return std::string();
    WEIR_ASSIGN(const JsonObject format, as_object(path, *value));
    WEIR_ASSIGN(const std::string_view type, required_string(path, format, "type"));
    if (type == "text") return std::string();
    if (type != "grammar")
      return out_of_range(join(path, "type"),
                          "expected text or grammar, found \"" + std::string(shown(type)) + "\"");
    WEIR_ASSIGN(const std::string_view syntax, required_string(path, format, "syntax"));
    if (syntax != "lark" && syntax != "regex")
      return out_of_range(join(path, "syntax"),
                          "expected lark or regex, found \"" + std::string(shown(syntax)) + "\"");
    WEIR_ASSIGN(const std::string_view definition, required_string(path, format, "definition"));
    GrammarSource source;
    source.kind = syntax == "lark" ? GrammarSource::Kind::kGrammar : GrammarSource::Kind::kRegex;
    source.text = definition;
    // The model still reads it; an agent cannot change what it sends.
    if (const Result<void> checked = check_source(source))
      function.input = std::move(source);
    else
      out_.ignored.add(join(path, "definition") + ": " + checked.error().message);
    return "The input satisfies this " + std::string(syntax) + " grammar:\n" +
           std::string(definition);
  }

  // Writes what all kinds have, and names the function.
  Result<void> begin(const std::string& path, JsonObject object, Space* space,
                     ToolFunction& function, std::string_view notation = {}) {
    std::string description;
    const auto append = [&](std::string_view text) {
      if (!description.empty() && !text.empty()) description += "\n\n";
      description += text;
    };
    if (space) {
      function.space = space->name;
      append(std::exchange(space->description, {}));
    }
    if (const auto value = json_get(object, "description")) {
      WEIR_ASSIGN(const std::string_view text, as_string(join(path, "description"), *value));
      append(text);
    }
    append(notation);
    function.own_name = function.name;
    function.name = name_in_space(function.space, function.own_name);
    WEIR_TRY(check_function_name(join(path, "name"), function.name));
    const auto same = std::ranges::find(out_.functions, function.name, &ToolFunction::name);
    if (same != out_.functions.end() && same->space != function.space)
      return out_of_range(join(path, "name"),
                          "expected names that differ with their namespaces, found \"" +
                              function.name + "\" twice");
    if (out_.functions.empty()) json_.begin_array();
    json_.begin_object().field("type", "function").key("function").begin_object();
    json_.field("name", function.name);
    if (!description.empty()) json_.field("description", description);
    return {};
  }

  void end(ToolFunction function) {
    json_.end_object().end_object();
    out_.functions.push_back(std::move(function));
  }

  GenerateRequest& out_;
  JsonWriter json_;
};

// The functions of the request that a choice means. One that is named without its namespace is
// found all the same.
std::vector<std::string> functions_named(const GenerateRequest& request, std::string_view space,
                                         std::string_view name) {
  const std::string full = name_in_space(space, name);
  for (const ToolFunction& function : request.functions)
    if (function.name == full) return {full};
  for (const ToolFunction& function : request.functions)
    if (space.empty() && function.own_name == name) return {function.name};
  return {full};  // check_tool_choice() says that there is none.
}

std::vector<std::string> functions_in(const GenerateRequest& request, std::string_view space) {
  std::vector<std::string> names;
  for (const ToolFunction& function : request.functions)
    if (function.space == space) names.push_back(function.name);
  if (names.empty()) names.emplace_back(space);  // As above.
  return names;
}

}  // namespace

Result<void> parse_response_tools(JsonObject body, GenerateRequest& out) {
  ToolsReader reader(out);
  if (const auto tools = json_get(body, "tools")) WEIR_TRY(reader.tools("tools", *tools, nullptr));
  JsonArray items;
  const auto input = json_get(body, "input");
  if (input && input->get(items) == simdjson::SUCCESS) {
    size_t index = 0;
    for (const JsonValue item : items) {
      const std::string path = at("input", index++);
      std::string_view type;
      if (item["type"].get(type) != simdjson::SUCCESS || type != kToolsItem) continue;
      WEIR_ASSIGN(const JsonObject object, as_object(path, item));
      WEIR_ASSIGN(const JsonValue tools, required_member(path, object, "tools"));
      WEIR_TRY(reader.tools(join(path, "tools"), tools, nullptr));
    }
  }
  reader.finish();
  return {};
}

Result<void> parse_response_choice(const FieldInput& in, GenerateRequest& out) {
  const auto names_of = [&out](const std::string& path,
                               JsonObject tool) -> Result<std::vector<std::string>> {
    WEIR_ASSIGN(const std::string_view type, required_string(path, tool, "type"));
    const bool is_space = type == "namespace";
    if (!is_space && type != "function" && type != "custom") {
      if (!is_vendor_tool(type))
        return unsupported(join(path, "type"),
                           "expected function, custom, namespace or allowed_tools, found \"" +
                               std::string(shown(type)) + "\"");
      out.ignored.add(path + ": " + std::string(shown(type)));
      return std::vector<std::string>();
    }
    WEIR_ASSIGN(const std::string_view name, required_string(path, tool, "name"));
    if (is_space) return functions_in(out, name);
    std::string_view space;
    if (const auto value = json_get(tool, "namespace")) {
      WEIR_ASSIGN(space, as_string(join(path, "namespace"), *value));
    }
    return functions_named(out, space, name);
  };
  return openai::parse_choice(in, names_of, out);
}

std::string name_in_space(std::string_view space, std::string_view name) {
  std::string full(space);
  if (!space.empty() && !space.ends_with(kJoint)) full += kJoint;
  return full.append(name);
}

std::string custom_arguments(std::string_view input) {
  std::string json;
  JsonWriter(json).begin_object().field("input", input).end_object();
  return json;
}

std::string custom_input(std::string_view arguments) {
  // A cut string may end within an escape: of \uXXXX twice, eleven bytes at the most.
  constexpr size_t kCutMax = 12;
  const auto read = [](const std::string& json) -> std::optional<std::string> {
    const Result<JsonDoc> doc = JsonDoc::parse(json);
    std::string_view text;
    if (!doc || doc->root()["input"].get(text) != simdjson::SUCCESS) return std::nullopt;
    return std::string(text);
  };
  if (const auto whole = read(std::string(arguments))) return *whole;
  for (size_t cut = 0; cut <= std::min(kCutMax, arguments.size()); ++cut)
    if (const auto part = read(std::string(arguments.substr(0, arguments.size() - cut)) + "\"}"))
      return *part;
  return std::string(arguments);
}

}  // namespace weir::api::responses
