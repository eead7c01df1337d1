#include "api/responses/response_object.h"

#include <optional>

#include "base/json.h"

namespace weir::api::responses {

namespace {

void append_usage(std::string& out, const Usage& usage) {
  JsonWriter json(out);
  json.begin_object().field("input_tokens", usage.prompt_tokens);
  json.key("input_tokens_details").begin_object().field("cached_tokens", usage.cached_tokens);
  if (usage.image_tokens > 0) json.field("image_tokens", usage.image_tokens);
  if (usage.audio_tokens > 0) json.field("audio_tokens", usage.audio_tokens);
  json.end_object().field("output_tokens", usage.completion_tokens);
  json.key("output_tokens_details").begin_object();
  json.field("reasoning_tokens", usage.reasoning_tokens).end_object();
  json.field("total_tokens", usage.prompt_tokens + usage.completion_tokens).end_object();
}

}  // namespace

std::string_view name_of(ResponseStatus status) {
  switch (status) {
    case ResponseStatus::kInProgress:
      return "in_progress";
    case ResponseStatus::kCompleted:
      return "completed";
    case ResponseStatus::kIncomplete:
      return "incomplete";
    case ResponseStatus::kFailed:
      return "failed";
  }
  return {};
}

std::string response_settings(const ResponsesRequest& request, std::string_view model,
                              float temperature, float top_p) {
  const GenerateRequest& generate = request.generate;
  std::string out;
  JsonWriter json(out);
  const auto number_or_null = [&](std::string_view name, std::optional<int64_t> number) {
    json.key(name);
    if (number)
      json.value(*number);
    else
      json.null();
  };
  json.begin_object().field("model", model);
  json.key("instructions").raw(request.instructions);
  number_or_null("max_output_tokens", generate.max_completion_tokens);
  number_or_null("max_tool_calls", request.max_tool_calls);
  json.key("metadata").raw(request.metadata);
  json.field("parallel_tool_calls", generate.parallel_tool_calls);
  json.key("previous_response_id");
  if (request.previous_response_id)
    json.value(*request.previous_response_id);
  else
    json.null();
  json.key("prompt_cache_key").raw(request.prompt_cache_key);
  json.key("reasoning").raw(request.reasoning);
  json.key("safety_identifier").raw(request.safety_identifier);
  json.field("service_tier", "default").field("store", request.store);
  json.field("temperature", temperature);
  json.key("text").raw(request.text);
  json.key("tool_choice").raw(request.tool_choice);
  json.key("tools").raw(request.tools);
  json.field("top_logprobs", generate.top_logprobs.value_or(0)).field("top_p", top_p);
  json.field("truncation", request.truncation);
  json.key("user").raw(request.user);
  return out.substr(1);  // Without the brace: members only.
}

void append_response_head(std::string& out, const ResponseFacts& facts, ResponseStatus status,
                          const Error* error) {
  JsonWriter json(out);
  json.begin_object().field("id", facts.id).field("object", "response");
  json.field("created_at", facts.created).field("status", name_of(status));
  json.field("background", false).key("error");
  if (error)
    json.begin_object().field("code", "server_error").field("message", error->message).end_object();
  else
    json.null();
  json.key("incomplete_details");
  if (status == ResponseStatus::kIncomplete)
    json.begin_object().field("reason", "max_output_tokens").end_object();
  else
    json.null();
  out.append(",").append(facts.settings).append(",\"output\":[");
}

void append_response_tail(std::string& out, const Usage* usage) {
  out.append("],\"usage\":");
  if (usage)
    append_usage(out, *usage);
  else
    out.append("null");
  out.append("}");
}

}  // namespace weir::api::responses
