#include "api/openai/chat_members.h"

#include "base/json.h"

namespace weir::api::openai {

std::string facts_json(const ChatFacts& facts, std::string_view object) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("id", facts.id).field("object", object);
  json.field("created", facts.created).field("model", facts.model);
  return out.substr(1);  // Without the brace: members only.
}

void write_usage(std::string& out, const Usage& usage) {
  JsonWriter json(out);
  json.begin_object();
  json.field("prompt_tokens", usage.prompt_tokens);
  json.field("completion_tokens", usage.completion_tokens);
  json.field("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  json.key("prompt_tokens_details").begin_object();
  json.field("cached_tokens", usage.cached_tokens).field("audio_tokens", usage.audio_tokens);
  if (usage.image_tokens > 0) json.field("image_tokens", usage.image_tokens);
  json.end_object();
  json.key("completion_tokens_details").begin_object();
  json.field("reasoning_tokens", usage.reasoning_tokens).field("audio_tokens", 0);
  json.field("accepted_prediction_tokens", usage.predicted_right);
  json.field("rejected_prediction_tokens", usage.predicted_wrong);
  json.end_object().end_object();
}

std::string ids_json(std::span<const int32_t> ids) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const int32_t id : ids) json.value(id);
  json.end_array();
  return out;
}

void append_token_ids(std::string& out, ChoiceRef choice) {
  if (!choice.tokens) return;
  out.append(R"(,"token_ids":)").append(ids_json(*choice.tokens));
  choice.tokens->clear();
}

std::string_view finish_reason(const Finish& finish, bool legacy_functions) {
  switch (finish.kind) {
    case FinishKind::kStop:
      return "stop";
    case FinishKind::kLength:
      return "length";
    case FinishKind::kCalls:
      return legacy_functions ? "function_call" : "tool_calls";
  }
  return "stop";
}

}  // namespace weir::api::openai
