#include "api/ollama/shape.h"

#include <cmath>
#include <string_view>
#include <utility>

#include "api/ollama/error.h"
#include "api/ollama/time_text.h"
#include "base/json.h"

namespace weir::api::ollama {

namespace {

// What one object says of the answer.
struct Part {
  std::string_view text{}, thinking{};
  std::string_view calls{};     // Elements of a JSON array.
  std::string_view logprobs{};  // The same.
};

int64_t nanoseconds(double ms) { return std::llround(ms * 1e6); }

// Opens the object. What follows its text is the caller's.
void write_part(JsonWriter& json, const AnswerFacts& facts, const Part& part) {
  json.begin_object().field("model", facts.model).field("created_at", now_text());
  if (facts.chat) {
    json.key("message").begin_object().field("role", "assistant").field("content", part.text);
    if (!part.thinking.empty()) json.field("thinking", part.thinking);
    if (!part.calls.empty()) json.key("tool_calls").begin_array().raw(part.calls).end_array();
    json.end_object();
  } else {
    json.field("response", part.text);
    if (!part.thinking.empty()) json.field("thinking", part.thinking);
  }
  if (!part.logprobs.empty()) json.key("logprobs").begin_array().raw(part.logprobs).end_array();
}

std::string take_logprobs(ChoiceRef choice) {
  std::string list;
  if (choice.logprobs && !choice.logprobs->empty()) choice.logprobs->write_and_clear(list);
  return list;
}

std::string_view done_reason(const Finish& finish) {
  return finish.kind == FinishKind::kLength ? "length" : "stop";
}

// What both ways of sending an answer have in common: a call is told when it is whole.
class OllamaShape : public AnswerShape {
 public:
  explicit OllamaShape(const AnswerFacts& facts) : facts_(facts) {}

  void begin(std::string&, const Usage&) override {}
  void begin_choice(std::string&, ChoiceRef) override {}
  void begin_call(std::string&, ChoiceRef, const CallRef& call) override {
    call_.clear();
    arguments_.clear();
    JsonWriter json(call_);
    json.begin_object().field("id", call.id).key("function").begin_object();
    json.field("index", call.number).field("name", call.name);
  }
  void call_arguments(std::string&, ChoiceRef, int32_t, std::string_view text) override {
    arguments_ += text;
  }
  void end_call(std::string& out, ChoiceRef choice, int32_t) override {
    call_.append(R"(,"arguments":)").append(arguments_.empty() ? "{}" : arguments_).append("}}");
    add_call(out, choice, std::exchange(call_, {}));
  }

 protected:
  virtual void add_call(std::string& out, ChoiceRef choice, std::string call) = 0;
  // The end of an object, and of the answer.
  void write_end(JsonWriter& json, const Usage& usage) const;

  const AnswerFacts facts_;
  std::string_view reason_ = "stop";

 private:
  std::string call_, arguments_;
};

void OllamaShape::write_end(JsonWriter& json, const Usage& usage) const {
  const std::chrono::duration<double> total = sched::Clock::now() - facts_.arrived;
  json.field("done", true).field("done_reason", reason_);
  json.field("total_duration", nanoseconds(milliseconds(total))).field("load_duration", 0);
  json.field("prompt_eval_count", usage.prompt_tokens);
  json.field("prompt_eval_duration", nanoseconds(usage.timings.prompt_ms));
  json.field("eval_count", usage.completion_tokens);
  json.field("eval_duration", nanoseconds(usage.timings.predicted_ms)).end_object();
}

class Lines final : public OllamaShape {
 public:
  explicit Lines(const AnswerFacts& facts) : OllamaShape(facts) { append(silence_, {}); }

  void text(std::string& out, ChoiceRef choice, std::string_view text) override {
    append(out, {.text = text, .logprobs = take_logprobs(choice)});
  }
  void reasoning(std::string& out, ChoiceRef choice, std::string_view text) override {
    append(out, {.thinking = text, .logprobs = take_logprobs(choice)});
  }
  // Log-probabilities of tokens that have no text of their own come last.
  void finish(std::string&, ChoiceRef choice, const Finish& finish) override {
    reason_ = done_reason(finish);
    logprobs_ = take_logprobs(choice);
  }
  void end(std::string& out, const Usage& usage) override {
    JsonWriter json(out);
    write_part(json, facts_, {.logprobs = logprobs_});
    write_end(json, usage);
    out += '\n';
  }
  void fail(std::string& out, const Error& error) override { out += error_json(error) + "\n"; }
  // Clients parse every line: one without text is the only one that means nothing.
  std::string_view keep_alive() const override { return silence_; }
  std::string_view content_type() const override { return "application/x-ndjson"; }

 private:
  void add_call(std::string& out, ChoiceRef choice, std::string call) override {
    append(out, {.calls = call, .logprobs = take_logprobs(choice)});
  }
  void append(std::string& out, const Part& part) const {
    JsonWriter json(out);
    write_part(json, facts_, part);
    json.field("done", false).end_object();
    out += '\n';
  }

  std::string silence_;
  std::string logprobs_;
};

class WholeAnswer final : public OllamaShape {
 public:
  using OllamaShape::OllamaShape;

  void text(std::string&, ChoiceRef, std::string_view text) override { text_ += text; }
  void reasoning(std::string&, ChoiceRef, std::string_view text) override { thinking_ += text; }
  void finish(std::string&, ChoiceRef choice, const Finish& finish) override {
    reason_ = done_reason(finish);
    logprobs_ = take_logprobs(choice);
  }
  void end(std::string& out, const Usage& usage) override {
    out.reserve(kBytes + text_.size() + thinking_.size() + calls_.size() + logprobs_.size());
    JsonWriter json(out);
    write_part(json, facts_,
               {.text = text_, .thinking = thinking_, .calls = calls_, .logprobs = logprobs_});
    write_end(json, usage);
    // What stands in the body is not held twice.
    for (std::string* held : {&text_, &thinking_, &calls_, &logprobs_}) std::string().swap(*held);
  }
  void fail(std::string&, const Error&) override {}

 private:
  static constexpr size_t kBytes = 512;  // Beside the texts: about 400.

  void add_call(std::string&, ChoiceRef, std::string call) override {
    if (!calls_.empty()) calls_ += ',';
    calls_ += call;
  }

  std::string text_, thinking_, calls_, logprobs_;
};

}  // namespace

std::unique_ptr<AnswerShape> make_shape(const AnswerFacts& facts) {
  if (facts.stream) return std::make_unique<Lines>(facts);
  return std::make_unique<WholeAnswer>(facts);
}

std::string empty_answer(const AnswerFacts& facts, std::string_view reason) {
  std::string out;
  JsonWriter json(out);
  write_part(json, facts, {});
  json.field("done", true).field("done_reason", reason).end_object();
  if (facts.stream) out += '\n';
  return out;
}

}  // namespace weir::api::ollama
