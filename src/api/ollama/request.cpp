#include "api/ollama/request.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "api/ollama/names.h"
#include "api/openai/tool_fields.h"
#include "api/request/keep_alive.h"
#include "api/request/structured_output.h"
#include "sched/request.h"

namespace weir::api::ollama {

namespace {

Result<void> parse_model(const FieldInput& in, Request& out) {
  WEIR_ASSIGN(const std::string_view name, as_string(in.path, in.value));
  out.shown_model = name;
  out.model = bare_name(name);
  return {};
}

// Templates that know of an effort know three.
Result<void> parse_think(const FieldInput& in, Request& out) {
  bool on = false;
  if (in.value.get(on) == simdjson::SUCCESS) {
    out.enable_thinking = out.wants_thinking = on;
    out.include_reasoning = on;
    return {};
  }
  std::string_view level;
  if (in.value.get(level) != simdjson::SUCCESS)
    return wrong_type(in.path, "a boolean, or low, medium, high or max", in.value);
  if (level.empty()) return {};
  if (level != "low" && level != "medium" && level != "high" && level != "max")
    return out_of_range(in.path, "expected low, medium, high, max, true or false, found \"" +
                                     std::string(shown(level)) + "\"");
  out.enable_thinking = out.wants_thinking = true;
  out.reasoning_effort = level == "max" ? "high" : std::string(level);
  return {};
}

// "json", or a schema.
Result<void> parse_format(const FieldInput& in, GenerateRequest& out) {
  const std::string path(in.path);
  std::string_view word;
  if (in.value.is_object()) return bind_schema(path, in.value, out);
  if (in.value.get(word) != simdjson::SUCCESS)
    return wrong_type(path, "\"json\" or a JSON schema (an object)", in.value);
  if (word.empty()) return {};
  if (word == "json") return bind_object(path, out);
  return out_of_range(path, "expected \"json\" or a JSON schema (an object), found \"" +
                                std::string(shown(word)) + "\"");
}

Result<void> parse_keep_alive(const FieldInput& in, Request& out) {
  WEIR_ASSIGN(out.keep_alive_s, keep_alive_of(in.path, in.value));
  return {};
}

Result<void> parse_images(const FieldInput& in, Request& out) {
  if (is_empty_value(in.value)) return {};
  return add_images(std::string(in.path), in.value, out.images, out);
}

using G = Request;
constexpr uint8_t kChat = 1, kGenerate = 2, kBoth = kChat | kGenerate;

constexpr auto kFields = std::to_array<Field<Request>>({
    {"model", "string", &parse_model,
     "The model's id or one of its aliases; :latest after it counts as nothing.", 0, 0, kBoth},
    {"messages", "array", &parse_messages,
     "The conversation: role, content, thinking, tool_calls, and of results tool_name or "
     "tool_call_id. A last message of the assistant's is continued. Absent or empty: the model is "
     "loaded, or with keep_alive 0 unloaded.",
     0, 0, kChat},
    {"prompt", "string", &G::prompt,
     "What the user says; with raw the text that is continued. Absent or empty: as with messages.",
     0, 0, kGenerate},
    {"suffix", "string", &G::suffix,
     "The text after the answer, for models with fill-in-the-middle tokens.", 0, 0, kGenerate},
    {"system", "string", &G::system, "The system message.", 0, 0, kGenerate},
    {"raw", "boolean", &G::raw, "The prompt is not put into the chat template.", 0, 0, kGenerate},
    {"images", "array", &parse_images,
     "Images in base64, which the user shows before the prompt; not beside raw or suffix.", 0, 0,
     kGenerate},
    {"tools", "array", &openai::parse_tools, "Functions that the model may call.", 0, 0, kChat},
    {"format", "string or object", &parse_format, "\"json\", or a JSON schema.", 0, 0, kBoth},
    {"options", "object", &parse_options, "How tokens are sampled, and how many.", 0, 0, kBoth},
    {"think", "boolean or string", &parse_think,
     "Whether the model thinks before it answers: true, false, low, medium, high, max; absent: as "
     "--thinking says. With false, thoughts that come all the same are not shown.",
     0, 0, kBoth},
    {"stream", "boolean", &G::stream, "A line of JSON for each part; absent: true.", 0, 0, kBoth},
    {"keep_alive", "string or number", &parse_keep_alive,
     "How long the model stays loaded: seconds, or \"5m\"; negative: for ever.", 0, 0, kBoth},
    {"logprobs", "boolean", &G::logprobs, "Log-probabilities of the tokens.", 0, 0, kBoth},
    {"top_logprobs", "integer", &G::top_logprobs, "Alternatives of each token.", 0,
     sched::kTopLogprobsMax, kBoth},
    {"template", "string", &refuse, "Not supported; raw takes whole prompts.", 0, 0, kGenerate},
    {"context", "array", {}, "Accepted; the prefix cache is always on.", 0, 0, kGenerate},
    {"truncate", "boolean", {}, "Accepted; prompts that are too long are refused.", 0, 0, kBoth},
    {"shift", "boolean", {}, "Accepted; the context is never shifted.", 0, 0, kBoth},
});

Result<Request> parse(uint8_t endpoint, const std::vector<FieldDoc>& known, std::string_view body,
                      const RequestLimits& limits) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  Request request;
  request.stream = true;
  WEIR_TRY(read_fields(kFields, endpoint, object, limits, request));
  request.ignored.add_unknown(object, known);
  return request;
}

// Images stand where the prompt has [img-0], [img-1] and so on, each once, and else before it.
ShownPrompt shown_prompt(Request& request) {
  std::vector<MediaSource> given = std::move(request.media);
  std::vector<bool> placed(given.size());
  std::string_view rest = request.prompt;
  std::string text;
  request.media.clear();
  constexpr std::string_view kOpen = "[img-";
  for (size_t at = 0; (at = rest.find(kOpen, at)) != std::string_view::npos;) {
    const char* const digits = rest.data() + at + kOpen.size();
    size_t number = 0;
    const auto [end, error] = std::from_chars(digits, rest.data() + rest.size(), number);
    const bool is_mark = error == std::errc() && end != rest.data() + rest.size() && *end == ']' &&
                         number < given.size() && !placed[number];
    if (!is_mark) {
      at += kOpen.size();
      continue;
    }
    text.append(rest.substr(0, at)).append(kPictureMark);
    rest.remove_prefix(static_cast<size_t>(end + 1 - rest.data()));
    at = 0;
    placed[number] = true;
    request.media.push_back(std::move(given[number]));
  }
  text += rest;
  std::string before;
  std::vector<MediaSource> media;
  for (size_t i = 0; i < given.size(); ++i) {
    if (placed[i]) continue;
    before += kPictureMark;
    media.push_back(std::move(given[i]));
  }
  std::ranges::move(request.media, std::back_inserter(media));
  request.media = std::move(media);
  return {.text = before + text, .pictures = given.size()};
}

}  // namespace

Result<Request> parse_chat(std::string_view body, const RequestLimits& limits) {
  static const std::vector<FieldDoc> kKnown = chat_fields();
  return parse(kChat, kKnown, body, limits);
}

Result<Request> parse_generate(std::string_view body, const RequestLimits& limits) {
  static const std::vector<FieldDoc> kKnown = generate_fields();
  return parse(kGenerate, kKnown, body, limits);
}

Result<void> complete(Request& request, bool has_template) {
  request.infill = !request.suffix.empty();
  if (request.raw && !request.system.empty())
    return out_of_range("system", "expected none beside raw, whose prompt is the whole text");
  if (request.infill || request.raw || !has_template) {
    if (request.infill && !request.media.empty())
      return out_of_range("images", "expected none beside suffix");
    if (!request.system.empty()) request.ignored.add("system");
    if (request.media.empty())
      request.prompts = {std::move(request.prompt)};
    else
      request.prompts = {shown_prompt(request)};
    return {};
  }
  JsonWriter json(request.messages);
  json.begin_array();
  if (!request.system.empty())
    json.begin_object().field("role", "system").field("content", request.system).end_object();
  MessageContent said = std::move(request.images);
  said.append(MessageContent(request.prompt));
  if (!said.empty()) {
    json.begin_object().field("role", "user").key("content");
    said.write(json);
    json.end_object();
  }
  json.end_array();
  request.last_role = "user";
  request.last_content = std::move(request.prompt);
  return {};
}

std::vector<FieldDoc> chat_fields() { return field_docs(kFields, kChat); }
std::vector<FieldDoc> generate_fields() { return field_docs(kFields, kGenerate); }

}  // namespace weir::api::ollama
