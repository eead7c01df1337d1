#include "api/llama/shape.h"

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "api/exchange/api_error.h"
#include "api/request/sampling_fields.h"
#include "base/json.h"

namespace weir::api::llama {

namespace {

// Requests have no places of their own.
constexpr int32_t kNoSlot = -1;

std::string_view stop_type(const Finish& finish) {
  if (finish.kind == FinishKind::kLength) return "limit";
  return finish.stop_string.empty() ? "eos" : "word";
}

class LlamaShape final : public AnswerShape {
 public:
  explicit LlamaShape(LlamaFacts facts)
      : facts_(std::move(facts)), choices_(static_cast<size_t>(facts_.choices)) {}

  void begin(std::string&, const Usage&) override {}
  void prompt(ChoiceRef choice, PromptRef prompt) override {
    at(choice).prompt = facts_.tokenizer->decode(prompt.tokens, /*skip_special=*/false);
  }
  void begin_choice(std::string&, ChoiceRef) override {}
  void progress(std::string& out, ChoiceRef choice, const PromptProgress& progress) override;
  void text(std::string& out, ChoiceRef choice, std::string_view text) override;
  // A completion is all content.
  void reasoning(std::string&, ChoiceRef, std::string_view) override {}
  void begin_call(std::string&, ChoiceRef, const CallRef&) override {}
  void call_arguments(std::string&, ChoiceRef, int32_t, std::string_view) override {}
  void end_call(std::string&, ChoiceRef, int32_t) override {}
  void finish(std::string& out, ChoiceRef choice, const Finish& finish) override;
  void keep(std::vector<int32_t>) override {}
  void end(std::string& out, const Usage& usage) override;
  void fail(std::string& out, const Error& error) override {
    out += "data: " + error_json(error) + "\n\n";
  }

 private:
  struct Choice {
    std::string content;  // Of an answer that is sent whole.
    std::string prompt;
    bool has_new_line = false;
    std::string json;  // Once it is finished.
  };

  Choice& at(ChoiceRef choice) { return choices_[static_cast<size_t>(choice.index)]; }
  static void write_head(JsonWriter& json, ChoiceRef choice, std::string_view content, bool stop);
  static void write_probabilities(JsonWriter& json, ChoiceRef choice);

  const LlamaFacts facts_;
  std::vector<Choice> choices_;
};

void LlamaShape::write_head(JsonWriter& json, ChoiceRef choice, std::string_view content,
                            bool stop) {
  json.begin_object().field("index", choice.index).field("content", content);
  json.key("tokens").begin_array();
  if (choice.tokens) {
    for (const int32_t token : *choice.tokens) json.value(token);
    choice.tokens->clear();
  }
  json.end_array().field("id_slot", kNoSlot).field("stop", stop);
}

void LlamaShape::write_probabilities(JsonWriter& json, ChoiceRef choice) {
  if (!choice.logprobs || choice.logprobs->empty()) return;
  std::string list;
  choice.logprobs->write_and_clear(list);
  json.key("completion_probabilities").raw(list);
}

void LlamaShape::text(std::string& out, ChoiceRef choice, std::string_view text) {
  Choice& own = at(choice);
  own.has_new_line = own.has_new_line || text.find('\n') != std::string_view::npos;
  if (!facts_.stream) {
    own.content += text;
    return;
  }
  out += "data: ";
  JsonWriter json(out);
  write_head(json, choice, text, false);
  json.field("tokens_predicted", choice.completion_tokens);
  json.field("tokens_evaluated", choice.prompt_tokens);
  write_probabilities(json, choice);
  if (choice.timings) {
    out += ',';
    append_timings(out, *choice.timings);
  }
  json.end_object();
  out += "\n\n";
}

void LlamaShape::progress(std::string& out, ChoiceRef choice, const PromptProgress& progress) {
  out += "data: ";
  JsonWriter json(out);
  choice.tokens = nullptr;
  write_head(json, choice, {}, false);
  json.field("tokens_predicted", choice.completion_tokens);
  json.field("tokens_evaluated", choice.prompt_tokens);
  out += ',';
  append_progress(out, progress);
  json.end_object();
  out += "\n\n";
}

void LlamaShape::finish(std::string& out, ChoiceRef choice, const Finish& finish) {
  Choice own = std::exchange(at(choice), {});
  std::string& body = facts_.stream ? out : at(choice).json;
  if (facts_.stream) body += "data: ";
  JsonWriter json(body);
  write_head(json, choice, own.content, true);
  json.field("model", facts_.model);
  json.field("tokens_predicted", choice.completion_tokens);
  json.field("tokens_evaluated", choice.prompt_tokens);
  json.key("generation_settings").raw(facts_.settings).field("prompt", own.prompt);
  json.field("has_new_line", own.has_new_line).field("truncated", false);
  json.field("stop_type", stop_type(finish)).field("stopping_word", finish.stop_string);
  json.field("tokens_cached", choice.prompt_tokens + choice.completion_tokens);
  body += ',';
  append_timings(body, finish.timings);
  write_probabilities(json, choice);
  json.end_object();
  if (facts_.stream) body += "\n\n";
}

void LlamaShape::end(std::string& out, const Usage&) {
  if (facts_.stream) return;
  if (facts_.list) out += '[';
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (i > 0) out += ',';
    out += std::exchange(choices_[i].json, {});
  }
  if (facts_.list) out += ']';
}

}  // namespace

std::string generation_settings(const GenerateRequest& asked, const sched::Request& request) {
  const sample::SamplingParams& params = request.sampling;
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("n_predict", request.max_tokens).field("seed", params.seed);
  for (const SamplingNumber& number : sampling_numbers())
    write_value(json.key(number.name), number, params);
  json.field("min_keep", 1).field("max_tokens", request.max_tokens);
  json.key("stop").begin_array();
  for (const std::string& text : asked.stop) json.value(text);
  json.end_array();
  json.key("logit_bias").begin_array();
  for (const auto& [token, bias] : params.logit_bias) {
    json.begin_object().field("token", token).key("bias");
    if (std::isfinite(bias))
      json.value(bias);
    else
      json.null();
    json.end_object();
  }
  json.end_array();
  json.field("ignore_eos", asked.ignore_eos).field("stream", asked.stream);
  json.field("n_probs", params.top_logprobs).end_object();
  return out;
}

std::unique_ptr<AnswerShape> make_llama_shape(LlamaFacts facts) {
  return std::make_unique<LlamaShape>(std::move(facts));
}

}  // namespace weir::api::llama
