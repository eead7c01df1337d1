#include "api/answer_shape.h"

#include "base/json.h"

namespace weir::api {

namespace {

std::string facts_json(const AnswerShape::Facts& facts, std::string_view object) {
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
  json.field("cached_tokens", usage.cached_tokens).field("audio_tokens", 0).end_object();
  json.key("completion_tokens_details").begin_object();
  json.field("reasoning_tokens", usage.reasoning_tokens).field("audio_tokens", 0);
  json.field("accepted_prediction_tokens", 0).field("rejected_prediction_tokens", 0);
  json.end_object().end_object();
}

}  // namespace

AnswerShape::AnswerShape(const Facts& facts)
    : chat_(facts.endpoint == Endpoint::kChat),
      legacy_functions_(facts.legacy_functions),
      tail_(facts.include_usage ? "}],\"usage\":null}\n\n" : "}]}\n\n"),
      facts_(facts_json(facts, chat_ ? "chat.completion.chunk" : "text_completion")),
      whole_facts_(facts_json(facts, chat_ ? "chat.completion" : "text_completion")),
      head_("data: {" + facts_ + ",\"choices\":[{\"index\":") {}

void AnswerShape::begin_choice(std::string& out, int32_t index) const {
  out.append(head_);
  JsonWriter(out).value(index);
}

void AnswerShape::append_role(std::string& out, int32_t index) const {
  if (!chat_) return;
  begin_choice(out, index);
  out.append(R"(,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null)");
  out.append(tail_);
}

void AnswerShape::append_text(std::string& out, int32_t index, std::string_view text,
                              std::string_view logprobs) const {
  begin_choice(out, index);
  out.append(chat_ ? R"(,"delta":{"content":)" : R"(,"text":)");
  append_json_string(out, text);
  if (chat_) return end_delta(out, logprobs);
  out.append(R"(,"logprobs":)").append(logprobs);
  out.append(R"(,"finish_reason":null)").append(tail_);
}

void AnswerShape::end_delta(std::string& out, std::string_view logprobs) const {
  out.append(R"(},"logprobs":)").append(logprobs);
  out.append(R"(,"finish_reason":null)").append(tail_);
}

// Under both names that clients read; each reads one of them.
void AnswerShape::append_reasoning(std::string& out, int32_t index, std::string_view text,
                                   std::string_view logprobs) const {
  begin_choice(out, index);
  out.append(R"(,"delta":{"reasoning_content":)");
  append_json_string(out, text);
  out.append(R"(,"reasoning":)");
  append_json_string(out, text);
  end_delta(out, logprobs);
}

// Id, type and name once: clients put deltas together by adding strings.
void AnswerShape::append_call(std::string& out, int32_t index, int32_t call, std::string_view id,
                              std::string_view name, std::string_view logprobs) const {
  begin_choice(out, index);
  if (legacy_functions_) {
    out.append(R"(,"delta":{"function_call":{"name":)");
    append_json_string(out, name);
    out.append(R"(,"arguments":""})");
    return end_delta(out, logprobs);
  }
  out.append(R"(,"delta":{"tool_calls":[{"index":)");
  JsonWriter(out).value(call);
  out.append(R"(,"id":)");
  append_json_string(out, id);
  out.append(R"(,"type":"function","function":{"name":)");
  append_json_string(out, name);
  out.append(R"(,"arguments":""}}])");
  end_delta(out, logprobs);
}

void AnswerShape::append_arguments(std::string& out, int32_t index, int32_t call,
                                   std::string_view arguments, std::string_view logprobs) const {
  begin_choice(out, index);
  if (legacy_functions_) {
    out.append(R"(,"delta":{"function_call":{"arguments":)");
    append_json_string(out, arguments);
    out.append("}");
    return end_delta(out, logprobs);
  }
  out.append(R"(,"delta":{"tool_calls":[{"index":)");
  JsonWriter(out).value(call);
  out.append(R"(,"function":{"arguments":)");
  append_json_string(out, arguments);
  out.append("}}]");
  end_delta(out, logprobs);
}

void AnswerShape::append_finish(std::string& out, int32_t index, std::string_view reason,
                                std::string_view logprobs) const {
  begin_choice(out, index);
  out.append(chat_ ? R"(,"delta":{},"logprobs":)" : R"(,"text":"","logprobs":)").append(logprobs);
  out.append(R"(,"finish_reason":")").append(reason).append("\"").append(tail_);
}

void AnswerShape::append_usage(std::string& out, const Usage& usage) const {
  out.append("data: {").append(facts_).append(R"(,"choices":[],"usage":)");
  write_usage(out, usage);
  out.append("}\n\n");
}

void AnswerShape::append_done(std::string& out) { out.append("data: [DONE]\n\n"); }

void AnswerShape::begin_whole(std::string& out) const {
  out.append("{").append(whole_facts_).append(",\"choices\":[");
}

void AnswerShape::begin_whole_choice(std::string& out, int32_t index,
                                     const AnswerText& text) const {
  out.append(index > 0 ? ",{\"index\":" : "{\"index\":");
  JsonWriter(out).value(index);
  out.append(chat_ ? R"(,"message":{"role":"assistant","content":)" : R"(,"text":)");
  if (text.content.empty() && !text.calls.empty())
    out.append("null");
  else
    append_json_string(out, text.content);
  if (!text.reasoning.empty()) {
    for (const char* key : {R"(,"reasoning_content":)", R"(,"reasoning":)"}) {
      out.append(key);
      append_json_string(out, text.reasoning);
    }
  }
  append_whole_calls(out, text.calls);
  if (chat_) out.append(R"(,"refusal":null,"annotations":[]})");
  out.append(R"(,"logprobs":)");
}

void AnswerShape::append_whole_calls(std::string& out, std::span<const ToolCall> calls) const {
  if (calls.empty()) return;
  const auto write_function = [](JsonWriter& json, const ToolCall& call) {
    json.begin_object().field("name", call.name).field("arguments", call.arguments).end_object();
  };
  out.append(legacy_functions_ ? R"(,"function_call":)" : R"(,"tool_calls":)");
  JsonWriter json(out);
  if (legacy_functions_) return write_function(json, calls.front());
  json.begin_array();
  for (const ToolCall& call : calls) {
    json.begin_object().field("id", call.id).field("type", "function").key("function");
    write_function(json, call);
    json.end_object();
  }
  json.end_array();
}

void AnswerShape::end_whole_choice(std::string& out, std::string_view reason) {
  out.append(R"(,"finish_reason":")").append(reason).append("\"}");
}

void AnswerShape::end_whole(std::string& out, const Usage& usage) {
  out.append("],\"usage\":");
  write_usage(out, usage);
  out += '}';
}

}  // namespace weir::api
