#include "api/openai/chat_shape.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "api/openai/chat_events.h"
#include "api/openai/chat_members.h"
#include "base/json.h"

namespace weir::api::openai {

namespace {

// Of a whole answer, and of each choice, beside texts and log-probabilities: about 700 and 150.
constexpr size_t kShapeBytes = 1024;

// Collects the pieces of each choice until it is finished, then its JSON until all are.
class WholeChat final : public AnswerShape {
 public:
  explicit WholeChat(const ChatFacts& facts)
      : chat_(facts.endpoint == Endpoint::kChat),
        legacy_functions_(facts.legacy_functions),
        choices_per_prompt_(static_cast<size_t>(facts.choices_per_prompt)),
        facts_(facts_json(facts, chat_ ? "chat.completion" : "text_completion")),
        choices_(static_cast<size_t>(facts.choices)),
        kept_(choices_.size()) {
    std::iota(kept_.begin(), kept_.end(), 0);
  }

  void begin(std::string&, const Usage&) override {}
  void prompt(ChoiceRef choice, PromptRef prompt) override;
  void begin_choice(std::string&, ChoiceRef) override {}
  void text(std::string&, ChoiceRef choice, std::string_view text) override {
    at(choice).text += text;
  }
  void reasoning(std::string&, ChoiceRef choice, std::string_view text) override {
    at(choice).reasoning += text;
  }
  void begin_call(std::string&, ChoiceRef choice, const CallRef& call) override {
    at(choice).calls.push_back({std::string(call.id), std::string(call.name), {}});
  }
  void call_arguments(std::string&, ChoiceRef choice, int32_t, std::string_view text) override {
    at(choice).calls.back().arguments += text;
  }
  void end_call(std::string&, ChoiceRef, int32_t) override {}
  void finish(std::string& out, ChoiceRef choice, const Finish& finish) override;
  void keep(std::vector<int32_t> choices) override { kept_ = std::move(choices); }
  void end(std::string& out, const Usage& usage) override;
  bool has_more() const override { return next_part_ < parts_.size(); }
  void append_more(std::string& out) override;
  void fail(std::string&, const Error&) override {}

 private:
  struct Call {
    std::string id, name;
    std::string arguments;  // JSON, unless it was cut.
  };
  struct Choice {
    std::string text, reasoning;
    std::vector<Call> calls;
    std::string json;  // Of the finished choice, after its index.
  };
  // Of a prompt, where the request asks for it.
  struct PromptShown {
    std::string ids;                    // The JSON of a member.
    std::vector<std::string> logprobs;  // A JSON array, in parts.
  };

  Choice& at(ChoiceRef choice) { return choices_[static_cast<size_t>(choice.index)]; }
  void add(std::string text) { parts_.emplace_back(glue_.emplace_back(std::move(text))); }
  void add_prompt(size_t choice);
  void append_message(std::string& out, const Choice& choice) const;
  void append_calls(std::string& out, const std::vector<Call>& calls) const;

  const bool chat_;
  const bool legacy_functions_;
  const size_t choices_per_prompt_;
  const std::string facts_;
  std::vector<Choice> choices_;
  std::vector<PromptShown> prompts_;  // Empty: not asked for.
  std::vector<int32_t> kept_;
  // Of the answer, from next_part_ on what end() has left. They lie in this object.
  std::vector<std::string_view> parts_;
  size_t next_part_ = 0;
  std::deque<std::string> glue_;  // The parts between those that were made before.
};

void WholeChat::finish(std::string&, ChoiceRef choice, const Finish& finish) {
  Choice collected = std::exchange(at(choice), {});
  std::string& out = at(choice).json;
  out.reserve(kShapeBytes + collected.text.size() + 2 * collected.reasoning.size() +
              (choice.logprobs ? choice.logprobs->json_bytes() : 0));
  append_message(out, collected);
  collected = {};  // What stands in the JSON is not held twice.
  out.append(R"(,"logprobs":)");
  if (choice.logprobs)
    choice.logprobs->write_and_clear(out);
  else
    out.append("null");
  out.append(R"(,"finish_reason":")").append(finish_reason(finish, legacy_functions_));
  out.append("\"");
  append_token_ids(out, choice);
  out.append("}");
}

void WholeChat::prompt(ChoiceRef choice, PromptRef prompt) {
  prompts_.resize(choices_.size() / choices_per_prompt_);
  PromptShown& shown = prompts_[static_cast<size_t>(choice.index) / choices_per_prompt_];
  if (choice.tokens && shown.ids.empty())
    shown.ids = R"(,"prompt_token_ids":)" + ids_json(prompt.tokens);
  if (!prompt.logprobs.empty()) shown.logprobs = std::move(prompt.logprobs);
}

void WholeChat::add_prompt(size_t choice) {
  if (prompts_.empty()) return;
  const PromptShown& shown = prompts_[choice / choices_per_prompt_];
  parts_.emplace_back(shown.ids);
  if (shown.logprobs.empty()) return;
  parts_.emplace_back(R"(,"prompt_logprobs":)");
  parts_.insert(parts_.end(), shown.logprobs.begin(), shown.logprobs.end());
}

void WholeChat::append_message(std::string& out, const Choice& choice) const {
  out.append(chat_ ? R"(,"message":{"role":"assistant","content":)" : R"(,"text":)");
  if (choice.text.empty() && !choice.calls.empty())
    out.append("null");
  else
    append_json_string(out, choice.text);
  if (!choice.reasoning.empty()) {
    for (const char* key : {R"(,"reasoning_content":)", R"(,"reasoning":)"}) {
      out.append(key);
      append_json_string(out, choice.reasoning);
    }
  }
  append_calls(out, choice.calls);
  if (chat_) out.append(R"(,"refusal":null,"annotations":[]})");
}

void WholeChat::append_calls(std::string& out, const std::vector<Call>& calls) const {
  if (calls.empty()) return;
  const auto write_function = [](JsonWriter& json, const Call& call) {
    json.begin_object().field("name", call.name).field("arguments", call.arguments).end_object();
  };
  out.append(legacy_functions_ ? R"(,"function_call":)" : R"(,"tool_calls":)");
  JsonWriter json(out);
  if (legacy_functions_) return write_function(json, calls.front());
  json.begin_array();
  for (const Call& call : calls) {
    json.begin_object().field("id", call.id).field("type", "function").key("function");
    write_function(json, call);
    json.end_object();
  }
  json.end_array();
}

void WholeChat::end(std::string& out, const Usage& usage) {
  add("{" + facts_ + ",\"choices\":[");
  for (size_t i = 0; i < kept_.size(); ++i) {
    add((i > 0 ? ",{\"index\":" : "{\"index\":") + std::to_string(i));
    if (!chat_) add_prompt(static_cast<size_t>(kept_[i]));
    parts_.emplace_back(choices_[static_cast<size_t>(kept_[i])].json);
  }
  add("]");
  if (chat_) add_prompt(0);  // A chat has one.
  std::string rest = ",\"usage\":";
  write_usage(rest, usage);
  rest += ',';
  append_timings(rest, usage.timings);
  rest += '}';
  add(std::move(rest));
  append_more(out);
}

void WholeChat::append_more(std::string& out) {
  size_t bytes = 0;
  for (size_t i = next_part_; i < parts_.size(); ++i) bytes += parts_[i].size();
  size_t room = std::min(bytes, kAnswerPartBytes);
  out.reserve(out.size() + room);
  while (has_more()) {
    std::string_view& part = parts_[next_part_];
    const std::string_view taken = part.substr(0, room);
    out.append(taken);
    room -= taken.size();
    part.remove_prefix(taken.size());
    if (!part.empty()) return;
    ++next_part_;
  }
}

}  // namespace

std::unique_ptr<AnswerShape> make_chat_shape(const ChatFacts& facts) {
  if (facts.stream) return make_chat_events(facts);
  return std::make_unique<WholeChat>(facts);
}

}  // namespace weir::api::openai
