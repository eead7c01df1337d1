// `system` and `messages` of Anthropic's API as chat templates expect a conversation. A message is
// a list of blocks there: what a tool has answered stands in a message of the user's, between
// texts.
#include <array>
#include <span>
#include <string>
#include <unordered_map>

#include "api/anthropic/message_request.h"
#include "api/prompt/content_part.h"

namespace weir::api::anthropic {

namespace {

enum class Role : uint8_t { kSystem, kUser, kAssistant, kTool };

std::string_view name_of(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      return "tool";
  }
  return {};
}

// Claude Code's first block of `system`. Its hash is another one in every request: a prompt that
// began with it would share no prefix with the one before.
constexpr std::string_view kBillingHeader = "x-anthropic-billing-header:";

std::string_view without_billing_header(std::string_view text) {
  if (!text.starts_with(kBillingHeader)) return text;
  const size_t end = text.find('\n');
  return end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
}

void append_line(std::string& text, std::string_view line) {
  if (line.empty()) return;
  if (!text.empty()) text += '\n';
  text += line;
}

constexpr auto kPartTypes = std::to_array<PartType>({{"text"}, {"image", PartKind::kImage}});
// Where a document's text comes from: a part, too, as far as it lies in the request.
constexpr auto kSourceTypes =
    std::to_array<PartType>({{"text", PartKind::kText, "data"}, {"image", PartKind::kImage}});

struct Block {
  JsonObject object;
  std::string_view type;
};

Result<Block> block_of(const std::string& path, JsonValue element) {
  Block block;
  WEIR_ASSIGN(block.object, as_object(path, element));
  WEIR_ASSIGN(block.type, required_string(path, block.object, "type"));
  return block;
}

// A block that is a content part. `expected`: what may stand there.
Result<std::string> text_of_block(const std::string& path, const Block& block,
                                  std::span<const PartType> types, std::string_view expected) {
  if (const PartType* known = part_type(types, block.type))
    return part_text(path, block.object, *known);
  return unsupported(join(path, "type"), "expected " + std::string(expected) + ", found \"" +
                                             std::string(shown(block.type)) + "\"");
}

// A string, or blocks that are content parts and nothing else.
Result<std::string> plain_text(const std::string& path, JsonValue content) {
  std::string_view whole;
  if (content.get(whole) == simdjson::SUCCESS) return std::string(whole);
  JsonArray blocks;
  if (content.get(blocks) != simdjson::SUCCESS)
    return wrong_type(path, "a string or an array of blocks", content);
  std::string joined;
  size_t index = 0;
  for (const JsonValue element : blocks) {
    const std::string block_path = at(path, index++);
    WEIR_ASSIGN(const Block block, block_of(block_path, element));
    WEIR_ASSIGN(const std::string text, text_of_block(block_path, block, kPartTypes, "\"text\""));
    append_line(joined, text);
  }
  return joined;
}

Result<void> append_members(const std::string& path, JsonObject object,
                            std::initializer_list<std::string_view> keys, std::string& text) {
  for (const std::string_view key : keys) {
    const auto value = json_get(object, key);
    if (!value) continue;
    WEIR_ASSIGN(const std::string_view member, as_string(join(path, key), *value));
    append_line(text, member);
  }
  return {};
}

// A document whose text is in the request, after its title.
Result<std::string> document_text(const std::string& path, JsonObject block) {
  WEIR_ASSIGN(const JsonValue source_value, required_member(path, block, "source"));
  const std::string source_path = join(path, "source");
  WEIR_ASSIGN(const Block source, block_of(source_path, source_value));
  std::string text;
  WEIR_TRY(append_members(path, block, {"title", "context"}, text));
  if (source.type != "content") {
    WEIR_ASSIGN(const std::string data,
                text_of_block(source_path, source, kSourceTypes, "\"text\" or \"content\""));
    append_line(text, data);
    return text;
  }
  WEIR_ASSIGN(const JsonValue content, required_member(source_path, source.object, "content"));
  WEIR_ASSIGN(const std::string inner, plain_text(join(source_path, "content"), content));
  append_line(text, inner);
  return text;
}

// What a search has found, after its title and where it is from.
Result<std::string> search_text(const std::string& path, JsonObject block) {
  std::string text;
  WEIR_TRY(append_members(path, block, {"title", "source"}, text));
  WEIR_ASSIGN(const JsonValue content, required_member(path, block, "content"));
  WEIR_ASSIGN(const std::string inner, plain_text(join(path, "content"), content));
  append_line(text, inner);
  return text;
}

// A block that both the user and a tool may send.
Result<std::string> shown_text(const std::string& path, const Block& block,
                               std::string_view expected) {
  if (block.type == "document") return document_text(path, block.object);
  if (block.type == "search_result") return search_text(path, block.object);
  return text_of_block(path, block, kPartTypes, expected);
}

struct ToolResult {
  std::string_view id;
  std::string text;
};

// Templates know no failed results: the text says it.
Result<ToolResult> tool_result(const std::string& path, JsonObject block) {
  ToolResult result;
  WEIR_ASSIGN(result.id, required_string(path, block, "tool_use_id"));
  if (const auto content = json_get(block, "content")) {
    const std::string content_path = join(path, "content");
    std::string_view whole;
    JsonArray blocks;
    if (content->get(whole) == simdjson::SUCCESS) {
      result.text = whole;
    } else if (content->get(blocks) == simdjson::SUCCESS) {
      size_t index = 0;
      for (const JsonValue element : blocks) {
        const std::string inner_path = at(content_path, index++);
        WEIR_ASSIGN(const Block inner, block_of(inner_path, element));
        WEIR_ASSIGN(const std::string text, shown_text(inner_path, inner, "\"text\""));
        append_line(result.text, text);
      }
    } else {
      return wrong_type(content_path, "a string or an array of blocks", *content);
    }
  }
  bool is_error = false;
  if (const auto flag = json_get(block, "is_error");
      flag && flag->get(is_error) != simdjson::SUCCESS)
    return wrong_type(join(path, "is_error"), "a boolean", *flag);
  if (is_error && !result.text.starts_with("Error")) result.text.insert(0, "Error: ");
  return result;
}

// Writes turns: what is said by one role in a row is one turn.
class Turns {
 public:
  explicit Turns(GenerateRequest& out) : out_(out), json_(out.messages) { json_.begin_array(); }

  void say(Role role, std::string_view text) {
    turn(role);
    append_line(text_, text);
  }
  void think(std::string_view text) {
    turn(Role::kAssistant);
    append_line(reasoning_, text);
  }
  void call(std::string_view id, std::string_view name, JsonValue input) {
    turn(Role::kAssistant);
    JsonWriter json(calls_);
    if (!calls_.empty()) calls_ += ',';
    json.begin_object().field("id", id).field("type", "function").key("function");
    json.begin_object().field("name", name).field("arguments", input).end_object().end_object();
    names_.insert_or_assign(std::string(id), std::string(name));
  }
  // Each result is a turn of its own.
  void result(const ToolResult& result) {
    end_turn();
    turn(Role::kTool);
    tool_id_ = result.id;
    text_ = result.text;
  }

  void finish() {
    // An assistant's turn without words is what an empty answer becomes: nothing to continue.
    const bool continues = open_ && role_ == Role::kAssistant && calls_.empty();
    if (continues && text_.find_first_not_of(" \t\r\n") == std::string::npos)
      open_ = false;
    else
      out_.continue_final_message = continues;
    end_turn();
    json_.end_array();
  }

 private:
  void turn(Role role) {
    if (open_ && role_ == role && role != Role::kTool) return;
    end_turn();
    open_ = true;
    role_ = role;
  }

  void end_turn() {
    if (!std::exchange(open_, false)) return;
    json_.begin_object().field("role", name_of(role_)).field("content", text_);
    if (role_ == Role::kTool) {
      if (const auto name = names_.find(tool_id_); name != names_.end())
        json_.field("name", name->second);
      json_.field("tool_call_id", tool_id_);
    }
    if (!reasoning_.empty()) {
      json_.field("reasoning_content", reasoning_);
      // gpt-oss's template refuses it beside a text with calls.
      if (text_.empty() || calls_.empty()) json_.field("thinking", reasoning_);
    }
    if (!calls_.empty()) json_.key("tool_calls").begin_array().raw(calls_).end_array();
    json_.end_object();
    out_.last_role = name_of(role_);
    out_.last_content = std::move(text_);
    text_.clear();
    reasoning_.clear();
    calls_.clear();
  }

  GenerateRequest& out_;
  JsonWriter json_;
  bool open_ = false;
  Role role_ = Role::kUser;
  std::string text_, reasoning_;
  std::string calls_;  // Elements of a JSON array.
  std::string tool_id_;
  std::unordered_map<std::string, std::string> names_;  // Of functions, by the ids of their calls.
};

Result<void> add_user_block(const std::string& path, const Block& block, Turns& turns) {
  if (block.type == "tool_result") {
    WEIR_ASSIGN(const ToolResult result, tool_result(path, block.object));
    turns.result(result);
    return {};
  }
  WEIR_ASSIGN(const std::string text,
              shown_text(path, block, "text, tool_result, document or search_result"));
  turns.say(Role::kUser, text);
  return {};
}

Result<void> add_assistant_block(const std::string& path, const Block& block, Turns& turns) {
  if (block.type == "thinking") {
    WEIR_ASSIGN(const std::string_view text, required_string(path, block.object, "thinking"));
    turns.think(text);
  } else if (block.type == "tool_use") {
    WEIR_ASSIGN(const std::string_view id, required_string(path, block.object, "id"));
    WEIR_ASSIGN(const std::string_view name, required_string(path, block.object, "name"));
    WEIR_ASSIGN(const JsonValue input, required_member(path, block.object, "input"));
    WEIR_TRY(as_object(join(path, "input"), input));
    turns.call(id, name, input);
  } else if (block.type != "redacted_thinking") {  // Which only its author can read.
    WEIR_ASSIGN(const std::string text,
                text_of_block(path, block, kPartTypes, "text, thinking or tool_use"));
    turns.say(Role::kAssistant, text);
  }
  return {};
}

Result<Role> role_of(const std::string& path, JsonObject message) {
  WEIR_ASSIGN(const std::string_view role, required_string(path, message, "role"));
  if (role == "user") return Role::kUser;
  if (role == "assistant") return Role::kAssistant;
  if (role == "system") return Role::kSystem;
  return out_of_range(join(path, "role"), "expected user, assistant or system, found \"" +
                                              std::string(shown(role)) + "\"");
}

Result<void> add_message(const std::string& path, JsonValue element, Turns& turns) {
  WEIR_ASSIGN(const JsonObject message, as_object(path, element));
  WEIR_ASSIGN(const Role role, role_of(path, message));
  WEIR_ASSIGN(const JsonValue content, required_member(path, message, "content"));
  const std::string content_path = join(path, "content");
  if (role == Role::kSystem) {
    WEIR_ASSIGN(const std::string text, plain_text(content_path, content));
    turns.say(role, without_billing_header(text));
    return {};
  }
  std::string_view whole;
  if (content.get(whole) == simdjson::SUCCESS) {
    turns.say(role, whole);
    return {};
  }
  JsonArray blocks;
  if (content.get(blocks) != simdjson::SUCCESS)
    return wrong_type(content_path, "a string or an array of blocks", content);
  if (blocks.size() == 0 && role == Role::kUser)
    return out_of_range(content_path, "expected at least one block, found none");
  size_t index = 0;
  for (const JsonValue block_value : blocks) {
    const std::string block_path = at(content_path, index++);
    WEIR_ASSIGN(const Block block, block_of(block_path, block_value));
    WEIR_TRY(role == Role::kUser ? add_user_block(block_path, block, turns)
                                 : add_assistant_block(block_path, block, turns));
  }
  return {};
}

}  // namespace

Result<void> parse_system(const FieldInput& in, MessageRequest& out) {
  JsonArray blocks;
  if (in.value.get(blocks) != simdjson::SUCCESS) {
    WEIR_ASSIGN(const std::string text, plain_text(std::string(in.path), in.value));
    out.system = without_billing_header(text);
    return {};
  }
  size_t index = 0;
  for (const JsonValue element : blocks) {
    const std::string path = at(in.path, index++);
    WEIR_ASSIGN(const Block block, block_of(path, element));
    WEIR_ASSIGN(const std::string text, text_of_block(path, block, kPartTypes, "\"text\""));
    append_line(out.system, without_billing_header(text));
  }
  return {};
}

Result<void> parse_conversation(const FieldInput& in, MessageRequest& out) {
  WEIR_ASSIGN(const JsonArray messages, as_array(in.path, in.value));
  if (messages.size() == 0)
    return out_of_range(in.path, "expected at least one message, found none");
  Turns turns(out);
  if (!out.system.empty()) turns.say(Role::kSystem, out.system);
  size_t index = 0;
  for (const JsonValue message : messages)
    WEIR_TRY(add_message(at(in.path, index++), message, turns));
  turns.finish();
  return {};
}

}  // namespace weir::api::anthropic
