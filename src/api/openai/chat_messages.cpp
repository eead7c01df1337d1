#include "api/openai/chat_messages.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "api/prompt/content_part.h"
#include "api/request/json_fields.h"

namespace weir::api::openai {

namespace {

constexpr std::array<std::string_view, 6> kRoles = {"developer", "system", "user",
                                                    "assistant", "tool",   "function"};

// OpenAI's: "low" is a view of at most 512 x 512 pixels; the others leave it to the model.
constexpr std::array<std::string_view, 4> kDetails = {"auto", "low", "high", "original"};

constexpr std::array<std::string_view, 6> kSoundFormats = {"wav", "flac", "mp3",
                                                            "ogg", "opus", "vorbis"};

Result<void> read_detail(const std::string& path, JsonObject object, MediaSource& source) {
  const auto value = json_get(object, "detail");
  if (!value) return {};
  WEIR_ASSIGN(const std::string_view detail, as_string(join(path, "detail"), *value));
  if (std::ranges::find(kDetails, detail) == kDetails.end())
    return out_of_range(join(path, "detail"), "expected auto, low, high or original, found \"" +
                                                  std::string(shown(detail)) + "\"");
  source.at_most_512 = detail == "low";
  return {};
}

Result<void> refuse_file_id(const std::string& path, JsonObject part) {
  if (const auto id = json_get(part, "file_id"); id && !is_empty_value(*id))
    return unsupported(join(path, "file_id"),
                       "this server keeps no files: send the image or sound itself, as a data: URL");
  return {};
}

// A string, or an object with a `url`, as chats and responses have it; and the object, if it is one.
struct Url {
  MediaSource source{};
  std::string path{};
  std::optional<JsonObject> object{};
};

Result<Url> url_of(Medium medium, const std::string& path, JsonObject part, const char* key) {
  WEIR_TRY(refuse_file_id(path, part));
  WEIR_ASSIGN(const JsonValue value, required_member(path, part, key));
  Url out;
  out.path = join(path, key);
  JsonObject object;
  std::string_view url;
  if (value.get(object) == simdjson::SUCCESS) {
    out.object = object;
    WEIR_ASSIGN(url, required_string(out.path, object, "url"));
    WEIR_ASSIGN(out.source, media_at(medium, join(out.path, "url"), url));
  } else if (value.get(url) == simdjson::SUCCESS) {
    WEIR_ASSIGN(out.source, media_at(medium, out.path, url));
  } else {
    return wrong_type(out.path, "a string or an object with a url", value);
  }
  return out;
}

Result<MediaSource> picture_of_url(const std::string& path, JsonObject part) {
  WEIR_ASSIGN(Url url, url_of(Medium::kPicture, path, part, "image_url"));
  if (url.object) WEIR_TRY(read_detail(url.path, *url.object, url.source));
  WEIR_TRY(read_detail(path, part, url.source));
  return std::move(url.source);
}

// vLLM's.
Result<MediaSource> sound_of_url(const std::string& path, JsonObject part) {
  WEIR_ASSIGN(Url url, url_of(Medium::kSound, path, part, "audio_url"));
  return std::move(url.source);
}

// OpenAI's `input_audio`, {data, format}. What the file is its first bytes say, whatever `format`
// does; but a format that is read nowhere is refused by its name.
Result<MediaSource> sound_of_data(const std::string& path, JsonObject part) {
  WEIR_ASSIGN(const JsonValue value, required_member(path, part, "input_audio"));
  const std::string audio_path = join(path, "input_audio");
  WEIR_ASSIGN(const JsonObject audio, as_object(audio_path, value));
  WEIR_TRY(refuse_file_id(audio_path, audio));
  if (const auto named = json_get(audio, "format"); named && !named->is_null()) {
    WEIR_ASSIGN(const std::string_view format, as_string(join(audio_path, "format"), *named));
    if (std::ranges::find(kSoundFormats, format) == kSoundFormats.end())
      return out_of_range(join(audio_path, "format"),
                          "expected wav, flac, mp3, ogg, opus or vorbis, found \"" +
                              std::string(shown(format)) + "\"");
  }
  WEIR_ASSIGN(const std::string_view data, required_string(audio_path, audio, "data"));
  return media_of_base64(Medium::kSound, join(audio_path, "data"), data);
}

// A file whose data are an image or a sound.
Result<MediaSource> medium_of_file(const std::string& path, JsonObject file) {
  WEIR_TRY(refuse_file_id(path, file));
  const char* member = json_get(file, "file_data") ? "file_data" : "file_url";
  if (!json_get(file, member)) return missing(join(path, "file_data"));
  WEIR_ASSIGN(const std::string_view data, required_string(path, file, member));
  return media_at(medium_of_address(data), join(path, member), data);
}

// A chat's, where the file is a member of its own.
Result<MediaSource> medium_of_file_part(const std::string& path, JsonObject part) {
  WEIR_ASSIGN(const JsonValue value, required_member(path, part, "file"));
  WEIR_ASSIGN(const JsonObject file, as_object(join(path, "file"), value));
  return medium_of_file(join(path, "file"), file);
}

constexpr auto kPartTypes =
    std::to_array<PartType>({{"text"},
                             {"input_text"},
                             {"output_text"},
                             {"refusal", PartKind::kText, "refusal"},
                             {"image_url", PartKind::kMedium, "", &picture_of_url},
                             {"input_image", PartKind::kMedium, "", &picture_of_url},
                             {"input_audio", PartKind::kMedium, "", &sound_of_data},
                             {"audio_url", PartKind::kMedium, "", &sound_of_url},
                             {"file", PartKind::kMedium, "", &medium_of_file_part},
                             {"input_file", PartKind::kMedium, "", &medium_of_file},
                             {"video_url", PartKind::kOther}});

Result<MessageContent> content_of(std::string_view path, JsonValue content,
                                  std::vector<MediaSource>* media) {
  std::string_view text;
  if (content.get(text) == simdjson::SUCCESS) return MessageContent(std::string(text));
  JsonArray parts;
  if (content.get(parts) != simdjson::SUCCESS)
    return wrong_type(path, "a string or an array of parts", content);
  if (parts.size() == 0) return out_of_range(path, "expected at least one part, found none");
  MessageContent out;
  size_t index = 0;
  for (const JsonValue element : parts) {
    const std::string part_path = at(path, index++);
    WEIR_ASSIGN(const JsonObject part, as_object(part_path, element));
    WEIR_ASSIGN(const std::string_view type, required_string(part_path, part, "type"));
    const PartType* const known = part_type(kPartTypes, type);
    if (known == nullptr)
      return out_of_range(join(part_path, "type"),
                          "expected \"text\", \"image_url\" or \"input_audio\", found \"" +
                              std::string(shown(type)) + "\"");
    WEIR_TRY(add_part(part_path, part, *known, out, media));
  }
  return out;
}

}  // namespace

Result<MessageContent> message_content(std::string_view path, JsonValue content,
                                       GenerateRequest& out) {
  return content_of(path, content, &out.media);
}

Result<std::string> content_text(std::string_view path, JsonValue content) {
  WEIR_ASSIGN(const MessageContent parts, content_of(path, content, nullptr));
  return parts.text();
}

// Arguments come as a string of JSON; templates want the object.
Result<void> write_arguments(std::string_view path, JsonValue arguments, JsonWriter& json) {
  json.key("arguments");
  if (arguments.is_object()) {
    json.value(arguments);
    return {};
  }
  WEIR_ASSIGN(const std::string_view text, as_string(path, arguments));
  const Result<JsonDoc> parsed = JsonDoc::parse(text);
  if (parsed && parsed->root().is_object())
    json.value(parsed->root());
  else
    json.value(text);
  return {};
}

namespace {

Result<void> write_tool_calls(std::string_view path, JsonValue value, JsonWriter& json) {
  WEIR_ASSIGN(const JsonArray calls, as_array(path, value));
  json.key("tool_calls").begin_array();
  size_t index = 0;
  for (const JsonValue element : calls) {
    const std::string call_path = at(path, index++);
    WEIR_ASSIGN(const JsonObject call, as_object(call_path, element));
    if (const auto type = json_get(call, "type")) {
      WEIR_ASSIGN(const std::string_view text, as_string(join(call_path, "type"), *type));
      if (text != "function")
        return unsupported(join(call_path, "type"),
                           "expected \"function\", found \"" + std::string(shown(text)) + "\"");
    }
    const auto function_value = json_get(call, "function");
    const std::string function_path = join(call_path, "function");
    if (!function_value) return missing(function_path);
    WEIR_ASSIGN(const JsonObject function, as_object(function_path, *function_value));
    WEIR_ASSIGN(const std::string_view name, required_string(function_path, function, "name"));
    json.begin_object();
    if (const auto id = json_get(call, "id")) {
      WEIR_ASSIGN(const std::string_view text, as_string(join(call_path, "id"), *id));
      json.field("id", text);
    }
    json.field("type", "function").key("function").begin_object().field("name", name);
    const auto arguments = json_get(function, "arguments");
    if (!arguments) return missing(join(function_path, "arguments"));
    WEIR_TRY(write_arguments(join(function_path, "arguments"), *arguments, json));
    json.end_object().end_object();
  }
  json.end_array();
  return {};
}

// Members that templates read and that are strings.
Result<void> write_strings(std::string_view path, JsonObject message, JsonWriter& json) {
  for (const std::string_view key : {"name", "tool_call_id"}) {
    const auto value = json_get(message, key);
    if (!value) continue;
    WEIR_ASSIGN(const std::string_view text, as_string(join(path, key), *value));
    json.field(key, text);
  }
  return {};
}

// What the model thought comes back under either of the names that it was sent by. Templates know
// it as reasoning_content, gpt-oss's as `thinking`, which it refuses beside a text with calls.
Result<void> write_reasoning(std::string_view path, JsonObject message, bool also_thinking,
                             JsonWriter& json) {
  for (const std::string_view key : {"reasoning_content", "reasoning"}) {
    const auto value = json_get(message, key);
    std::string_view text;
    if (!value) continue;
    if (value->get(text) != simdjson::SUCCESS && key == "reasoning") continue;  // OpenRouter's.
    WEIR_ASSIGN(text, as_string(join(path, key), *value));
    json.field("reasoning_content", text);
    if (also_thinking) json.field("thinking", text);
    return {};
  }
  return {};
}

// An assistant's call by its older name, which has no id.
Result<void> write_function_call(std::string_view path, JsonValue value, JsonWriter& json) {
  WEIR_ASSIGN(const JsonObject call, as_object(path, value));
  WEIR_ASSIGN(const std::string_view name, required_string(path, call, "name"));
  const auto arguments = json_get(call, "arguments");
  if (!arguments) return missing(join(path, "arguments"));
  json.key("tool_calls").begin_array().begin_object().field("type", "function");
  json.key("function").begin_object().field("name", name);
  WEIR_TRY(write_arguments(join(path, "arguments"), *arguments, json));
  json.end_object().end_object().end_array();
  return {};
}

Result<void> write_message(std::string_view path, JsonValue element, JsonWriter& json,
                           GenerateRequest& out) {
  WEIR_ASSIGN(const JsonObject message, as_object(path, element));
  WEIR_ASSIGN(std::string_view role, required_string(path, message, "role"));
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end())
    return out_of_range(join(path, "role"),
                        "expected developer, system, user, assistant, tool or function, found \"" +
                            std::string(shown(role)) + "\"");
  const auto calls = json_get(message, "tool_calls");
  const bool has_calls = calls && (!calls->is_array() || calls->get_array().value_unsafe().size());
  const auto content = json_get(message, "content");
  // An assistant may have spoken by calls, by a refusal, or not at all (an answer cut at once).
  if (!content && role != "assistant") return missing(join(path, "content"));
  if (role == "tool" && !json_get(message, "tool_call_id"))
    return missing(join(path, "tool_call_id"));

  MessageContent parts;
  if (content) {
    WEIR_ASSIGN(parts, message_content(join(path, "content"), *content, out));
  }
  std::string text = parts.text();
  // Models know `system` and `tool`; the other two are OpenAI's newer and older names of them.
  if (role == "developer") role = "system";
  if (role == "function") role = "tool";
  json.begin_object().field("role", role).key("content");
  parts.write(json);
  WEIR_TRY(write_strings(path, message, json));
  const auto older_call = json_get(message, "function_call");
  if (role == "assistant")
    WEIR_TRY(write_reasoning(path, message, text.empty() || !(has_calls || older_call), json));
  if (has_calls) {
    if (role != "assistant")
      return out_of_range(join(path, "tool_calls"), "only assistant messages have tool_calls");
    WEIR_TRY(write_tool_calls(join(path, "tool_calls"), *calls, json));
  } else if (older_call && role == "assistant") {
    WEIR_TRY(write_function_call(join(path, "function_call"), *older_call, json));
  }
  json.end_object();
  out.last_role = role;
  out.last_content = std::move(text);
  return {};
}

}  // namespace

Result<void> parse_messages(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonArray messages, as_array(in.path, in.value));
  if (messages.size() == 0)
    return out_of_range(in.path, "expected at least one message, found none");
  JsonWriter json(out.messages);
  json.begin_array();
  size_t index = 0;
  for (const JsonValue message : messages)
    WEIR_TRY(write_message(at(in.path, index++), message, json, out));
  json.end_array();
  return {};
}

}  // namespace weir::api::openai
