#include "api/responses/items.h"

#include <utility>

#include "api/openai/chat_messages.h"
#include "api/responses/tools.h"

namespace weir::api::responses {

namespace {

Result<std::string_view> string_member(std::string_view path, JsonObject object,
                                       std::string_view key) {
  const auto value = json_get(object, key);
  if (!value) return missing(join(path, key));
  WEIR_ASSIGN(const std::string_view text, as_string(join(path, key), *value));
  return text;
}

// The texts of a reasoning item's `content` or `summary`.
Result<std::string> part_texts(std::string_view path, JsonObject item, std::string_view key) {
  std::string texts;
  const auto value = json_get(item, key);
  if (!value) return texts;
  JsonArray parts;
  if (value->get(parts) != simdjson::SUCCESS)
    return wrong_type(join(path, key), "an array of parts", *value);
  size_t index = 0;
  for (const JsonValue element : parts) {
    const std::string part_path = at(join(path, key), index++);
    WEIR_ASSIGN(const JsonObject part, as_object(part_path, element));
    WEIR_ASSIGN(const std::string_view text, string_member(part_path, part, "text"));
    if (!texts.empty()) texts += '\n';
    texts += text;
  }
  return texts;
}

}  // namespace

ResponseItems::ResponseItems(GenerateRequest& out) : out_(out), json_(out.messages) {
  json_.begin_array();
}

void ResponseItems::add_instructions(std::string_view text) {
  if (has_system_) system_ += "\n\n";
  has_system_ = true;
  system_ += text;
}

void ResponseItems::add_text(std::string_view text) {
  close();
  write("user", MessageContent(std::string(text)));
}

Result<void> ResponseItems::add(std::string_view path, JsonValue item) {
  WEIR_ASSIGN(const JsonObject object, as_object(path, item));
  std::string_view type = "message";  // Clients leave it out.
  if (json_get(object, "type") || !json_get(object, "role")) {
    WEIR_ASSIGN(type, string_member(path, object, "type"));
  }
  if (type == "message") return add_message(path, object);
  if (type == "reasoning") return add_reasoning(path, object);
  if (type == "function_call" || type == "custom_tool_call")
    return add_call(path, object, type == "custom_tool_call");
  if (type == "function_call_output" || type == "custom_tool_call_output")
    return add_call_output(path, object);
  return unsupported(join(path, "type"),
                     "expected message, reasoning, function_call, function_call_output, "
                     "custom_tool_call, custom_tool_call_output or item_reference, found \"" +
                         std::string(shown(type)) + "\"");
}

Result<void> ResponseItems::add_message(std::string_view path, JsonObject item) {
  WEIR_ASSIGN(const std::string_view role, string_member(path, item, "role"));
  const auto content = json_get(item, "content");
  if (!content) return missing(join(path, "content"));
  JsonArray parts;
  // An answer that was cut at once has no part.
  const bool empty = content->get(parts) == simdjson::SUCCESS && parts.size() == 0;
  if (role == "assistant") {
    std::string text;
    if (!empty) {
      WEIR_ASSIGN(text, openai::content_text(join(path, "content"), *content));
    }
    add_assistant(std::move(text));
    return {};
  }
  WEIR_ASSIGN(const MessageContent said,
              openai::message_content(join(path, "content"), *content, out_));
  if (role != "user" && role != "system" && role != "developer")
    return out_of_range(join(path, "role"),
                        "expected user, assistant, system or developer, found \"" +
                            std::string(shown(role)) + "\"");
  if (role != "user" && !begun_ && !turn_.open && said.media() == 0) {
    add_instructions(said.text());  // Most templates know one system message, at the beginning.
    return {};
  }
  close();
  write(role == "user" ? "user" : "system", said);
  return {};
}

void ResponseItems::add_assistant(std::string text) {
  // A text after another is another turn; one after calls is the same turn's.
  if (turn_.has_content && turn_.calls.empty()) close();
  turn_.open = turn_.has_content = true;
  turn_.content += text;
}

Result<void> ResponseItems::add_reasoning(std::string_view path, JsonObject item) {
  WEIR_ASSIGN(std::string text, part_texts(path, item, "content"));
  if (text.empty()) {
    WEIR_ASSIGN(text, part_texts(path, item, "summary"));
  }
  if (turn_.has_content && turn_.calls.empty()) close();
  turn_.open = true;
  if (!turn_.reasoning.empty() && !text.empty()) turn_.reasoning += '\n';
  turn_.reasoning += text;
  return {};
}

// The model's own form of it: the name with its namespace, a custom tool's input as an argument.
Result<void> ResponseItems::add_call(std::string_view path, JsonObject item, bool custom) {
  WEIR_ASSIGN(const std::string_view name, string_member(path, item, "name"));
  std::string_view space;
  if (const auto value = json_get(item, "namespace")) {
    WEIR_ASSIGN(space, as_string(join(path, "namespace"), *value));
  }
  WEIR_ASSIGN(const std::string_view id, string_member(path, item, "call_id"));
  const std::string_view key = custom ? "input" : "arguments";
  const auto arguments = json_get(item, key);
  if (!arguments) return missing(join(path, key));
  std::string_view input;
  if (custom) {
    WEIR_ASSIGN(input, as_string(join(path, key), *arguments));
  }
  turn_.open = true;
  if (!turn_.calls.empty()) turn_.calls += ',';
  JsonWriter json(turn_.calls);
  json.begin_object().field("id", id).field("type", "function");
  json.key("function").begin_object().field("name", name_in_space(space, name));
  if (custom)
    json.key("arguments").raw(custom_arguments(input));
  else
    WEIR_TRY(openai::write_arguments(join(path, key), *arguments, json));
  json.end_object().end_object();
  return {};
}

Result<void> ResponseItems::add_call_output(std::string_view path, JsonObject item) {
  WEIR_ASSIGN(const std::string_view id, string_member(path, item, "call_id"));
  const auto output = json_get(item, "output");
  if (!output) return missing(join(path, "output"));
  WEIR_ASSIGN(const MessageContent result,
              openai::message_content(join(path, "output"), *output, out_));
  close();
  write("tool", result, id);
  return {};
}

// Writes the model's turn, and before it what must come first.
void ResponseItems::close() {
  if (!std::exchange(begun_, true) && has_system_)
    write("system", MessageContent(system_));
  if (!turn_.open) return;
  const Turn turn = std::exchange(turn_, {});
  json_.begin_object().field("role", "assistant").field("content", turn.content);
  if (!turn.reasoning.empty()) {
    json_.field("reasoning_content", turn.reasoning);
    // gpt-oss's template knows it as `thinking`, which it refuses beside a text with calls.
    if (turn.content.empty() || turn.calls.empty()) json_.field("thinking", turn.reasoning);
  }
  if (!turn.calls.empty()) json_.key("tool_calls").raw("[" + turn.calls + "]");
  json_.end_object();
  out_.last_role = "assistant";
  out_.last_content = turn.content;
}

void ResponseItems::write(std::string_view role, const MessageContent& content,
                          std::string_view call_id) {
  json_.begin_object().field("role", role).key("content");
  content.write(json_);
  if (!call_id.empty()) json_.field("tool_call_id", call_id);
  json_.end_object();
  out_.last_role = role;
  out_.last_content = content.text();
}

void ResponseItems::finish() {
  close();
  json_.end_array();
}

}  // namespace weir::api::responses
