// `system` and `messages` of Anthropic's API as chat templates expect a conversation. A message is
// a list of blocks there: what a tool has answered stands in a message of the user's, between
// texts.
#include <array>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

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

// An image's source: its data, or an address.
Result<MediaSource> picture_of_source(const std::string& path, JsonObject source) {
  WEIR_ASSIGN(const std::string_view type, required_string(path, source, "type"));
  if (type == "base64") {
    const std::string data_path = join(path, "data");
    WEIR_ASSIGN(const std::string_view data, required_string(path, source, "data"));
    WEIR_ASSIGN(const std::string_view media_type, required_string(path, source, "media_type"));
    if (!media_type.starts_with("image/"))
      return unsupported(join(path, "media_type"), "expected one of images, found \"" +
                                                       std::string(shown(media_type)) + "\"");
    return media_of_base64(Medium::kPicture, data_path, data);
  }
  if (type == "url") {
    WEIR_ASSIGN(const std::string_view url, required_string(path, source, "url"));
    return media_at(Medium::kPicture, join(path, "url"), url);
  }
  return unsupported(join(path, "type"),
                     "expected base64 or url, found \"" + std::string(shown(type)) + "\"");
}

Result<MediaSource> picture_of_image(const std::string& path, JsonObject block) {
  const std::string source_path = join(path, "source");
  WEIR_ASSIGN(const JsonValue value, required_member(path, block, "source"));
  WEIR_ASSIGN(const JsonObject source, as_object(source_path, value));
  return picture_of_source(source_path, source);
}

constexpr auto kPartTypes = std::to_array<PartType>(
    {{"text"}, {"image", PartKind::kMedium, "", &picture_of_image}});
// Where a document's text comes from: a part, too, as far as it lies in the request.
constexpr auto kSourceTypes = std::to_array<PartType>({{"text", PartKind::kText, "data"}});

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

// Adds the text of a block that is a content part; a text that is nothing adds no line.
// `expected`: what may stand there.
Result<void> add_block(const std::string& path, const Block& block,
                       std::span<const PartType> types, std::string_view expected,
                       MessageContent& out, std::vector<MediaSource>* media) {
  const PartType* const known = part_type(types, block.type);
  if (known == nullptr)
    return unsupported(join(path, "type"), "expected " + std::string(expected) + ", found \"" +
                                               std::string(shown(block.type)) + "\"");
  MessageContent part;
  WEIR_TRY(add_part(path, block.object, *known, part, media));
  out.append(part);
  return {};
}

// A string, or blocks that are content parts and nothing else.
Result<MessageContent> plain_content(const std::string& path, JsonValue content,
                                     std::vector<MediaSource>* media) {
  std::string_view whole;
  if (content.get(whole) == simdjson::SUCCESS) return MessageContent(std::string(whole));
  JsonArray blocks;
  if (content.get(blocks) != simdjson::SUCCESS)
    return wrong_type(path, "a string or an array of blocks", content);
  MessageContent out;
  size_t index = 0;
  for (const JsonValue element : blocks) {
    const std::string block_path = at(path, index++);
    WEIR_ASSIGN(const Block block, block_of(block_path, element));
    WEIR_TRY(add_block(block_path, block, kPartTypes, "\"text\"", out, media));
  }
  return out;
}

Result<void> add_members(const std::string& path, JsonObject object,
                         std::initializer_list<std::string_view> keys, MessageContent& out) {
  for (const std::string_view key : keys) {
    const auto value = json_get(object, key);
    if (!value) continue;
    WEIR_ASSIGN(const std::string_view member, as_string(join(path, key), *value));
    out.add_line(member);
  }
  return {};
}

// A document whose text is in the request, after its title.
Result<void> add_document(const std::string& path, JsonObject block, MessageContent& out,
                          std::vector<MediaSource>* media) {
  WEIR_ASSIGN(const JsonValue source_value, required_member(path, block, "source"));
  const std::string source_path = join(path, "source");
  WEIR_ASSIGN(const Block source, block_of(source_path, source_value));
  WEIR_TRY(add_members(path, block, {"title", "context"}, out));
  if (source.type != "content")
    return add_block(source_path, source, kSourceTypes, "\"text\" or \"content\"", out, nullptr);
  WEIR_ASSIGN(const JsonValue content, required_member(source_path, source.object, "content"));
  WEIR_ASSIGN(const MessageContent inner,
              plain_content(join(source_path, "content"), content, media));
  out.append(inner);
  return {};
}

// What a search has found, after its title and where it is from.
Result<void> add_search(const std::string& path, JsonObject block, MessageContent& out) {
  WEIR_TRY(add_members(path, block, {"title", "source"}, out));
  WEIR_ASSIGN(const JsonValue content, required_member(path, block, "content"));
  WEIR_ASSIGN(const MessageContent inner,
              plain_content(join(path, "content"), content, nullptr));
  out.append(inner);
  return {};
}

// A block that both the user and a tool may send.
Result<void> add_shown(const std::string& path, const Block& block, std::string_view expected,
                       MessageContent& out, std::vector<MediaSource>* media) {
  if (block.type == "document") return add_document(path, block.object, out, media);
  if (block.type == "search_result") return add_search(path, block.object, out);
  return add_block(path, block, kPartTypes, expected, out, media);
}

struct ToolResult {
  std::string_view id;
  MessageContent content;
};

// Templates know no failed results: the text says it.
Result<ToolResult> tool_result(const std::string& path, JsonObject block,
                               std::vector<MediaSource>* media) {
  ToolResult result;
  WEIR_ASSIGN(result.id, required_string(path, block, "tool_use_id"));
  if (const auto content = json_get(block, "content")) {
    const std::string content_path = join(path, "content");
    std::string_view whole;
    JsonArray blocks;
    if (content->get(whole) == simdjson::SUCCESS) {
      result.content = MessageContent(std::string(whole));
    } else if (content->get(blocks) == simdjson::SUCCESS) {
      size_t index = 0;
      for (const JsonValue element : blocks) {
        const std::string inner_path = at(content_path, index++);
        WEIR_ASSIGN(const Block inner, block_of(inner_path, element));
        WEIR_TRY(add_shown(inner_path, inner, "text or image", result.content, media));
      }
    } else {
      return wrong_type(content_path, "a string or an array of blocks", *content);
    }
  }
  bool is_error = false;
  if (const auto flag = json_get(block, "is_error");
      flag && flag->get(is_error) != simdjson::SUCCESS)
    return wrong_type(join(path, "is_error"), "a boolean", *flag);
  if (is_error && !result.content.text().starts_with("Error")) result.content.prefix("Error: ");
  return result;
}

// Writes turns: what is said by one role in a row is one turn.
class Turns {
 public:
  explicit Turns(GenerateRequest& out) : out_(out), json_(out.messages) { json_.begin_array(); }

  void say(Role role, const MessageContent& content) {
    turn(role);
    content_.append(content);
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
    content_ = result.content;
  }

  void finish() {
    // An assistant's turn without words is what an empty answer becomes: nothing to continue.
    const bool continues = open_ && role_ == Role::kAssistant && calls_.empty();
    if (continues && content_.text().find_first_not_of(" \t\r\n") == std::string::npos)
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
    std::string text = content_.text();
    json_.begin_object().field("role", name_of(role_)).key("content");
    content_.write(json_);
    if (role_ == Role::kTool) {
      if (const auto name = names_.find(tool_id_); name != names_.end())
        json_.field("name", name->second);
      json_.field("tool_call_id", tool_id_);
    }
    if (!reasoning_.empty()) {
      json_.field("reasoning_content", reasoning_);
      // gpt-oss's template refuses it beside a text with calls.
      if (text.empty() || calls_.empty()) json_.field("thinking", reasoning_);
    }
    if (!calls_.empty()) json_.key("tool_calls").begin_array().raw(calls_).end_array();
    json_.end_object();
    out_.last_role = name_of(role_);
    out_.last_content = std::move(text);
    content_ = {};
    reasoning_.clear();
    calls_.clear();
  }

  GenerateRequest& out_;
  JsonWriter json_;
  bool open_ = false;
  Role role_ = Role::kUser;
  MessageContent content_;
  std::string reasoning_;
  std::string calls_;  // Elements of a JSON array.
  std::string tool_id_;
  std::unordered_map<std::string, std::string> names_;  // Of functions, by the ids of their calls.
};

Result<void> add_user_block(const std::string& path, const Block& block, Turns& turns,
                            std::vector<MediaSource>* media) {
  if (block.type == "tool_result") {
    WEIR_ASSIGN(const ToolResult result, tool_result(path, block.object, media));
    turns.result(result);
    return {};
  }
  MessageContent content;
  WEIR_TRY(add_shown(path, block, "text, image, tool_result, document or search_result", content,
                     media));
  turns.say(Role::kUser, content);
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
    MessageContent content;
    WEIR_TRY(add_block(path, block, kPartTypes, "text, thinking or tool_use", content, nullptr));
    turns.say(Role::kAssistant, content);
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

Result<void> add_message(const std::string& path, JsonValue element, Turns& turns,
                         std::vector<MediaSource>* media) {
  WEIR_ASSIGN(const JsonObject message, as_object(path, element));
  WEIR_ASSIGN(const Role role, role_of(path, message));
  WEIR_ASSIGN(const JsonValue content, required_member(path, message, "content"));
  const std::string content_path = join(path, "content");
  if (role == Role::kSystem) {
    WEIR_ASSIGN(const MessageContent text, plain_content(content_path, content, nullptr));
    turns.say(role, MessageContent(std::string(without_billing_header(text.text()))));
    return {};
  }
  std::string_view whole;
  if (content.get(whole) == simdjson::SUCCESS) {
    turns.say(role, MessageContent(std::string(whole)));
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
    WEIR_TRY(role == Role::kUser ? add_user_block(block_path, block, turns, media)
                                 : add_assistant_block(block_path, block, turns));
  }
  return {};
}

}  // namespace

Result<void> parse_system(const FieldInput& in, MessageRequest& out) {
  JsonArray blocks;
  if (in.value.get(blocks) != simdjson::SUCCESS) {
    WEIR_ASSIGN(const MessageContent text,
                plain_content(std::string(in.path), in.value, nullptr));
    out.system = without_billing_header(text.text());
    return {};
  }
  size_t index = 0;
  for (const JsonValue element : blocks) {
    const std::string path = at(in.path, index++);
    WEIR_ASSIGN(const Block block, block_of(path, element));
    MessageContent text;
    WEIR_TRY(add_block(path, block, kPartTypes, "\"text\"", text, nullptr));
    append_line(out.system, without_billing_header(text.text()));
  }
  return {};
}

Result<void> parse_conversation(const FieldInput& in, MessageRequest& out) {
  WEIR_ASSIGN(const JsonArray messages, as_array(in.path, in.value));
  if (messages.size() == 0)
    return out_of_range(in.path, "expected at least one message, found none");
  Turns turns(out);
  if (!out.system.empty()) turns.say(Role::kSystem, MessageContent(out.system));
  size_t index = 0;
  for (const JsonValue message : messages)
    WEIR_TRY(add_message(at(in.path, index++), message, turns, &out.media));
  turns.finish();
  return {};
}

}  // namespace weir::api::anthropic
