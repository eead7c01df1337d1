// `messages` of /api/chat as chat templates expect a conversation. A call's arguments are an object
// there already; what it lacks are ids: Ollama's clients name the function whose result a message
// is, or rely on the order.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "api/ollama/request.h"
#include "api/request/message_content.h"

namespace weir::api::ollama {

namespace {

constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};

// Digits of an id that is made up: with its four letters nine characters, as Mistral's templates
// want it.
constexpr size_t kIdDigits = 5;

Result<std::string_view> text_member(const std::string& path, JsonObject object,
                                     std::string_view key) {
  const auto value = json_get(object, key);
  if (!value) return std::string_view();
  return as_string(join(path, key), *value);
}

class Conversation {
 public:
  explicit Conversation(GenerateRequest& out) : out_(out), json_(out.messages) {
    json_.begin_array();
  }

  Result<void> add(const std::string& path, JsonValue element);
  void finish();

 private:
  struct Call {
    std::string id, name;
    bool answered = false;
  };

  Result<void> add_calls(const std::string& path, JsonValue value);
  Result<void> add_call(const std::string& path, JsonValue element);
  Result<void> add_result(const std::string& path, JsonObject message);
  Result<void> add_thinking(const std::string& path, JsonObject message, bool alone);
  std::string new_id();

  GenerateRequest& out_;
  JsonWriter json_;
  std::vector<Call> calls_;  // Of all messages.
  bool has_calls_ = false;   // The last message.
};

std::string Conversation::new_id() {
  const std::string digits = std::to_string(calls_.size());
  return "call" + std::string(kIdDigits - std::min(kIdDigits, digits.size()), '0') + digits;
}

Result<void> Conversation::add_call(const std::string& path, JsonValue element) {
  WEIR_ASSIGN(const JsonObject call, as_object(path, element));
  WEIR_ASSIGN(const JsonValue function_value, required_member(path, call, "function"));
  const std::string function_path = join(path, "function");
  WEIR_ASSIGN(const JsonObject function, as_object(function_path, function_value));
  WEIR_ASSIGN(const std::string_view name, required_string(function_path, function, "name"));
  WEIR_ASSIGN(const JsonValue arguments, required_member(function_path, function, "arguments"));
  WEIR_TRY(as_object(join(function_path, "arguments"), arguments));
  WEIR_ASSIGN(const std::string_view given, text_member(path, call, "id"));
  const std::string id = given.empty() ? new_id() : std::string(given);
  json_.begin_object().field("id", id).field("type", "function").key("function");
  json_.begin_object().field("name", name).field("arguments", arguments);
  json_.end_object().end_object();
  calls_.push_back({id, std::string(name)});
  return {};
}

Result<void> Conversation::add_calls(const std::string& path, JsonValue value) {
  WEIR_ASSIGN(const JsonArray calls, as_array(path, value));
  has_calls_ = calls.size() > 0;
  if (!has_calls_) return {};
  json_.key("tool_calls").begin_array();
  size_t index = 0;
  for (const JsonValue call : calls) WEIR_TRY(add_call(at(path, index++), call));
  json_.end_array();
  return {};
}

// Whose result it is: of the call that has the id, else of the first without a result that has the
// function's name, else of the first without one.
Result<void> Conversation::add_result(const std::string& path, JsonObject message) {
  WEIR_ASSIGN(const std::string_view id, text_member(path, message, "tool_call_id"));
  WEIR_ASSIGN(const std::string_view name, text_member(path, message, "tool_name"));
  const auto call = std::ranges::find_if(calls_, [&](const Call& each) {
    if (!id.empty()) return each.id == id;
    return !each.answered && (name.empty() || each.name == name);
  });
  const bool found = call != calls_.end();
  if (found) call->answered = true;
  const std::string_view function = name.empty() && found ? std::string_view(call->name) : name;
  if (!function.empty()) json_.field("name", function);
  const std::string_view result_of = id.empty() && found ? std::string_view(call->id) : id;
  if (!result_of.empty()) json_.field("tool_call_id", result_of);
  return {};
}

// Templates know it as reasoning_content, gpt-oss's as `thinking`, which it refuses beside a text
// with calls.
Result<void> Conversation::add_thinking(const std::string& path, JsonObject message, bool alone) {
  WEIR_ASSIGN(const std::string_view thinking, text_member(path, message, "thinking"));
  if (thinking.empty()) return {};
  json_.field("reasoning_content", thinking);
  if (alone) json_.field("thinking", thinking);
  return {};
}

Result<void> Conversation::add(const std::string& path, JsonValue element) {
  WEIR_ASSIGN(const JsonObject message, as_object(path, element));
  WEIR_ASSIGN(const std::string_view role, required_string(path, message, "role"));
  if (std::ranges::find(kRoles, role) == kRoles.end())
    return out_of_range(join(path, "role"), "expected system, user, assistant or tool, found \"" +
                                                std::string(shown(role)) + "\"");
  WEIR_ASSIGN(const std::string_view text, text_member(path, message, "content"));
  MessageContent content;
  if (const auto images = json_get(message, "images"); images && !is_empty_value(*images)) {
    if (role == "assistant")
      return out_of_range(join(path, "images"), "messages of the assistant have none");
    WEIR_TRY(add_images(join(path, "images"), *images, content, out_));
  }
  content.append(MessageContent(std::string(text)));
  const auto calls = json_get(message, "tool_calls");
  const bool may_call = calls && !is_empty_value(*calls);
  json_.begin_object().field("role", role).key("content");
  content.write(json_);
  has_calls_ = false;
  if (role == "assistant") {
    WEIR_TRY(add_thinking(path, message, text.empty() || !may_call));
    if (may_call) WEIR_TRY(add_calls(join(path, "tool_calls"), *calls));
  } else if (may_call) {
    return out_of_range(join(path, "tool_calls"), "only assistant messages have tool_calls");
  }
  if (role == "tool") WEIR_TRY(add_result(path, message));
  json_.end_object();
  out_.last_role = role;
  out_.last_content = text;
  return {};
}

// An assistant's turn without words is what an empty answer becomes: nothing to continue.
void Conversation::finish() {
  json_.end_array();
  out_.continue_final_message = out_.last_role == "assistant" && !has_calls_ &&
                                out_.last_content.find_first_not_of(" \t\r\n") != std::string::npos;
}

}  // namespace

// Ollama's images are base64 alone; a data: URL is read as well.
Result<void> add_images(const std::string& path, JsonValue value, MessageContent& content,
                        GenerateRequest& out) {
  WEIR_ASSIGN(const JsonArray images, as_array(path, value));
  size_t index = 0;
  for (const JsonValue image : images) {
    const std::string image_path = at(path, index++);
    WEIR_ASSIGN(const std::string_view digits, as_string(image_path, image));
    MediaSource source = media_of_base64(Medium::kPicture, image_path, digits);
    if (digits.starts_with("data:")) {
      WEIR_ASSIGN(source, media_at(Medium::kPicture, image_path, digits));
    }
    out.media.push_back(std::move(source));
    content.add_medium(Medium::kPicture);
  }
  return {};
}

Result<void> parse_messages(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonArray messages, as_array(in.path, in.value));
  if (messages.size() == 0) return {};  // To load the model.
  Conversation conversation(out);
  size_t index = 0;
  for (const JsonValue message : messages)
    WEIR_TRY(conversation.add(at(in.path, index++), message));
  conversation.finish();
  return {};
}

}  // namespace weir::api::ollama
