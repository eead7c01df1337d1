#include "api/prompt/chat_prompt.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "api/media/media_set.h"
#include "api/request/json_fields.h"
#include "api/serving/reasoning_limit.h"
#include "api/serving/tool_messages.h"
#include "base/json.h"
#include "sched/engine_handle.h"

namespace weir::api {

namespace {

// Variables of ours, which chat_template_kwargs cannot replace.
constexpr std::array<std::string_view, 3> kReservedVariables = {"messages", "tools",
                                                                "add_generation_prompt"};

Result<void> write_kwargs(const std::string& kwargs, JsonWriter& json) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(kwargs));
  JsonObject object;
  if (doc.root().get(object) != simdjson::SUCCESS) return {};
  for (const auto [key, value] : object)
    if (std::find(kReservedVariables.begin(), kReservedVariables.end(), key) ==
        kReservedVariables.end())
      json.field(key, value);
  return {};
}

// A template is a program: the interpreter's limits bound it, but that a client may send one at all
// is an option of the server (--trust-request-template).
Result<text::ChatTemplate> template_of(const ApiConfig& config, const std::string& source) {
  if (!config.trust_request_template)
    return unsupported("chat_template",
                       "this server takes no templates from requests (--trust-request-template)");
  Result<text::ChatTemplate> parsed = text::ChatTemplate::parse(source);
  if (!parsed)
    return fail(ErrorCode::kInvalid, "Invalid value for 'chat_template': " + parsed.error().message,
                "chat_template", "invalid_value");
  return parsed;
}

// Templates know the switch by two names. What chat_template_kwargs says wins.
void write_thinking(const ApiConfig& config, const GenerateRequest& request, JsonWriter& json) {
  const auto said = [&](std::string_view name) {
    std::string key;
    append_json_string(key, name);
    return request.template_kwargs.find(key + ":") != std::string::npos;
  };
  std::optional<bool> thinking = config.thinking ? config.thinking : request.thinking_unasked;
  if (request.reasoning_effort == "none" || reasoning_budget(config, request) == 0)
    thinking = false;
  if (request.enable_thinking) thinking = request.enable_thinking;
  for (const char* name : {"enable_thinking", "thinking"})
    if (thinking && !said(name)) json.field(name, *thinking);
  if (request.reasoning_effort && request.reasoning_effort != "none" && !said("reasoning_effort"))
    json.field("reasoning_effort", *request.reasoning_effort);
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Ends the prompt where the last message's text ends, as transformers does it: templates may trim
// the text and always close the turn.
Result<void> cut_after_final_message(std::string& prompt, const std::string& content) {
  const std::string_view text = trim(content);
  const size_t begin = prompt.rfind(text);
  if (text.empty() || begin == std::string::npos)
    return out_of_range("continue_final_message",
                        "the chat template does not repeat the last message's text, so there is "
                        "nothing to continue");
  // The client's own trailing space belongs to the text if the template kept it.
  const size_t kept =
      prompt.compare(begin, content.size(), content) == 0 ? content.size() : text.size();
  prompt.resize(begin + kept);
  return {};
}

}  // namespace

Result<std::string> render_chat(const ServingContext& serving, const GenerateRequest& request,
                                int64_t now) {
  if (serving.config.engine != nullptr && serving.config.engine->max_tokens_fit() > 0 &&
      serving.config.engine->hearing().layers > 0)
    return fail(ErrorCode::kUnsupported,
                "This model writes down what it hears, and chats with nobody: use "
                "/v1/audio/transcriptions or /v1/audio/translations.",
                "messages", "unsupported_endpoint");
  const bool with_tools = request.may_call();
  const text::ChatTemplate* chat_template = with_tools && serving.config.tool_use_template
                                                ? serving.config.tool_use_template
                                                : serving.config.chat_template;
  std::optional<text::ChatTemplate> own;
  if (request.chat_template) {
    WEIR_ASSIGN(own, template_of(serving.config, *request.chat_template));
    chat_template = &*own;
  }
  if (!chat_template)
    return fail(ErrorCode::kUnsupported,
                "This model has no chat template: use /v1/completions, or start the server with "
                "one.",
                "messages", "unsupported_endpoint");
  WEIR_TRY(check_media(serving.config, request.media));
  TemplateTools writes = with_tools ? serving.outputs.tool_use_writes : serving.outputs.chat_writes;
  if (own)
    writes = probe_template(*own, serving.config.special_tokens, media_marks(serving.config));
  std::string variables;
  JsonWriter json(variables);
  json.begin_object();
  if ((with_tools && !writes.tools) || !writes.calls || !writes.results || !writes.strings ||
      !request.media.empty()) {
    const output::CallFormat* const calls = serving.outputs.calls;
    WEIR_ASSIGN(const std::string messages,
                write_tools_into(request.messages, with_tools ? request.tools : std::string(),
                                 writes, calls ? *calls : output::described_calls(),
                                 media_marks(serving.config)));
    json.key("messages").raw(messages);
  } else {
    json.key("messages").raw(request.messages);
  }
  if (with_tools) json.key("tools").raw(request.tools);
  // To continue the last message, the turn must not be followed by the opening of another.
  json.field("add_generation_prompt",
             request.add_generation_prompt.value_or(!request.continue_final_message));
  for (const auto& [name, text] : serving.config.special_tokens) json.field(name, text);
  write_thinking(serving.config, request, json);
  if (!request.template_kwargs.empty()) WEIR_TRY(write_kwargs(request.template_kwargs, json));
  json.end_object();

  Result<std::string> prompt = chat_template->render(variables, now);
  if (!prompt)
    return fail(ErrorCode::kInvalid,
                "The chat template refuses these messages: " + prompt.error().message, "messages");
  if (request.continue_final_message)
    WEIR_TRY(cut_after_final_message(*prompt, request.last_content));
  return prompt;
}

}  // namespace weir::api
