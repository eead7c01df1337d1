#include "api/openai/chat_events.h"

#include <utility>

#include "api/exchange/api_error.h"
#include "api/openai/chat_members.h"
#include "base/json.h"

namespace weir::api::openai {

namespace {

// What a choice of an answer in progress has used.
void write_usage_so_far(std::string& out, ChoiceRef choice) {
  JsonWriter json(out);
  json.begin_object().field("prompt_tokens", choice.prompt_tokens);
  json.field("completion_tokens", choice.completion_tokens);
  json.field("total_tokens", choice.prompt_tokens + choice.completion_tokens).end_object();
}

// An event for every piece. What does not change from event to event is built once.
class ChatEvents final : public AnswerShape {
 public:
  explicit ChatEvents(const ChatFacts& facts)
      : chat_(facts.endpoint == Endpoint::kChat),
        legacy_functions_(facts.legacy_functions),
        include_usage_(facts.include_usage),
        continuous_usage_(facts.include_usage && facts.continuous_usage),
        facts_(facts_json(facts, chat_ ? "chat.completion.chunk" : "text_completion")),
        head_("data: {" + facts_ + ",\"choices\":[{\"index\":") {}

  void begin(std::string&, const Usage&) override {}
  void prompt(ChoiceRef, PromptRef prompt) override {
    prompt_ids_ = R"(,"prompt_token_ids":)" + ids_json(prompt.tokens);
  }
  void begin_choice(std::string& out, ChoiceRef choice) override;
  void progress(std::string& out, ChoiceRef choice, const PromptProgress& progress) override;
  void text(std::string& out, ChoiceRef choice, std::string_view text) override;
  void reasoning(std::string& out, ChoiceRef choice, std::string_view text) override;
  void begin_call(std::string& out, ChoiceRef choice, const CallRef& call) override;
  void call_arguments(std::string& out, ChoiceRef choice, int32_t call,
                      std::string_view text) override;
  void end_call(std::string&, ChoiceRef, int32_t) override {}
  void finish(std::string& out, ChoiceRef choice, const Finish& finish) override;
  void end(std::string& out, const Usage& usage) override;
  void fail(std::string& out, const Error& error) override;

 private:
  void open(std::string& out, ChoiceRef choice) const;
  static void append_logprobs(std::string& out, LogprobList* logprobs);
  void end_delta(std::string& out, ChoiceRef choice);
  void close(std::string& out, ChoiceRef choice);

  const bool chat_;
  const bool legacy_functions_;
  const bool include_usage_;
  const bool continuous_usage_;
  std::string prompt_ids_;   // A member for the next event; empty: none.
  const std::string facts_;  // "id":...,"object":...,"created":...,"model":...
  const std::string head_;   // Of an event, up to the choice's index.
};

void ChatEvents::open(std::string& out, ChoiceRef choice) const {
  out.append(head_);
  JsonWriter(out).value(choice.index);
}

void ChatEvents::append_logprobs(std::string& out, LogprobList* logprobs) {
  if (!logprobs || logprobs->empty())
    out.append("null");
  else
    logprobs->write_and_clear(out);
}

void ChatEvents::end_delta(std::string& out, ChoiceRef choice) {
  out.append(R"(},"logprobs":)");
  append_logprobs(out, choice.logprobs);
  out.append(R"(,"finish_reason":null)");
  close(out, choice);
}

// The end of the choice, and of the event.
void ChatEvents::close(std::string& out, ChoiceRef choice) {
  append_token_ids(out, choice);
  // Chats say it of the event, completions of the choice.
  const std::string prompt_ids = prompt_ids_.empty() ? "" : std::exchange(prompt_ids_, {});
  if (!chat_) out.append(prompt_ids);
  out.append("}]");
  if (chat_) out.append(prompt_ids);
  if (continuous_usage_) {
    out.append(",\"usage\":");
    write_usage_so_far(out, choice);
  } else if (include_usage_) {
    out.append(",\"usage\":null");
  }
  if (choice.timings) {
    out.append(",");
    append_timings(out, *choice.timings);
  }
  out.append("}\n\n");
}

void ChatEvents::begin_choice(std::string& out, ChoiceRef choice) {
  if (!chat_) return;
  open(out, choice);
  out.append(R"(,"delta":{"role":"assistant","content":"")");
  end_delta(out, choice.before_text());
}

void ChatEvents::progress(std::string& out, ChoiceRef choice, const PromptProgress& progress) {
  open(out, choice);
  out.append(chat_ ? R"(,"delta":{})" : R"(,"text":"")");
  out.append(R"(,"logprobs":null,"finish_reason":null}])");
  if (include_usage_) out.append(",\"usage\":null");
  out.append(",");
  append_progress(out, progress);
  out.append("}\n\n");
}

void ChatEvents::text(std::string& out, ChoiceRef choice, std::string_view text) {
  open(out, choice);
  out.append(chat_ ? R"(,"delta":{"content":)" : R"(,"text":)");
  append_json_string(out, text);
  if (chat_) return end_delta(out, choice);
  out.append(R"(,"logprobs":)");
  append_logprobs(out, choice.logprobs);
  out.append(R"(,"finish_reason":null)");
  close(out, choice);
}

// Under both names that clients read; each reads one of them.
void ChatEvents::reasoning(std::string& out, ChoiceRef choice, std::string_view text) {
  open(out, choice);
  out.append(R"(,"delta":{"reasoning_content":)");
  append_json_string(out, text);
  out.append(R"(,"reasoning":)");
  append_json_string(out, text);
  end_delta(out, choice);
}

// Id, type and name once: clients put deltas together by adding strings.
void ChatEvents::begin_call(std::string& out, ChoiceRef choice, const CallRef& call) {
  open(out, choice);
  if (legacy_functions_) {
    out.append(R"(,"delta":{"function_call":{"name":)");
    append_json_string(out, call.name);
    out.append(R"(,"arguments":""})");
    return end_delta(out, choice);
  }
  out.append(R"(,"delta":{"tool_calls":[{"index":)");
  JsonWriter(out).value(call.number);
  out.append(R"(,"id":)");
  append_json_string(out, call.id);
  out.append(R"(,"type":"function","function":{"name":)");
  append_json_string(out, call.name);
  out.append(R"(,"arguments":""}}])");
  end_delta(out, choice);
}

void ChatEvents::call_arguments(std::string& out, ChoiceRef choice, int32_t call,
                                std::string_view text) {
  open(out, choice);
  if (legacy_functions_) {
    out.append(R"(,"delta":{"function_call":{"arguments":)");
    append_json_string(out, text);
    out.append("}");
    return end_delta(out, choice);
  }
  out.append(R"(,"delta":{"tool_calls":[{"index":)");
  JsonWriter(out).value(call);
  out.append(R"(,"function":{"arguments":)");
  append_json_string(out, text);
  out.append("}}]");
  end_delta(out, choice);
}

void ChatEvents::finish(std::string& out, ChoiceRef choice, const Finish& finish) {
  open(out, choice);
  out.append(chat_ ? R"(,"delta":{},"logprobs":)" : R"(,"text":"","logprobs":)");
  append_logprobs(out, choice.logprobs);
  out.append(R"(,"finish_reason":")").append(finish_reason(finish, legacy_functions_));
  out.append("\"");
  choice.timings = &finish.timings;
  close(out, choice);
}

void ChatEvents::end(std::string& out, const Usage& usage) {
  if (include_usage_) {
    out.append("data: {").append(facts_).append(R"(,"choices":[],"usage":)");
    write_usage(out, usage);
    out.append(",");
    append_timings(out, usage.timings);
    out.append("}\n\n");
  }
  out.append("data: [DONE]\n\n");
}

void ChatEvents::fail(std::string& out, const Error& error) {
  out.append("data: ").append(error_json(error)).append("\n\n");
}

}  // namespace

std::unique_ptr<AnswerShape> make_chat_events(const ChatFacts& facts) {
  return std::make_unique<ChatEvents>(facts);
}

}  // namespace weir::api::openai
