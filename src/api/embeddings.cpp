#include "api/embeddings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/base64.h"
#include "api/memory_cost.h"
#include "api/prompt_tokens.h"
#include "base/json.h"

namespace weir::api {

namespace {

// What becomes of the pooled states.
struct Form {
  bool base64 = false;
  int32_t dimensions = 0;
  int32_t norm = kNormEuclid;
};

// The instruction before each input.
Result<std::string_view> instruction_of(const EmbeddingConfig& config,
                                        const EmbeddingRequest& request) {
  const std::string& name = request.prompt_name.value_or(config.default_prompt);
  if (name.empty()) return std::string_view();
  for (const auto& [known, text] : config.prompts)
    if (known == name) return std::string_view(text);
  if (!request.prompt_name) return std::string_view();
  return out_of_range("prompt_name",
                      "expected a prompt that config_sentence_transformers.json "
                      "names, found \"" +
                          std::string(shown(name)) + "\"");
}

Result<std::vector<std::vector<int32_t>>> tokenise_inputs(const ApiConfig& config,
                                                          const PrepareInput& in,
                                                          const EmbeddingRequest& request) {
  WEIR_ASSIGN(const std::string_view instruction, instruction_of(config.embedding, request));
  const int32_t uncut_max = uncut_tokens_max(request.truncation, in.tokens_max);
  std::vector<std::vector<int32_t>> prompts;
  if (request.chat) {
    WEIR_ASSIGN(const std::string text, render_chat(config, *request.chat, in.now));
    WEIR_ASSIGN(prompts.emplace_back(), tokenise(config, "messages", uncut_max, text,
                                                 {.add_special = false, .parse_special = true}));
    truncate(request.truncation, in.tokens_max, prompts.back());
    if (prompts.back().empty())
      return out_of_range("messages", "expected at least one token, found an empty text");
    WEIR_TRY(check_prompt_length(config, "messages", std::ssize(prompts.back()), 0, in.tokens_max));
  }
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Prompt& input = request.inputs[i];
    if (const auto* ids = std::get_if<std::vector<int32_t>>(&input)) {
      prompts.push_back(*ids);
    } else {
      WEIR_ASSIGN(prompts.emplace_back(),
                  tokenise(config, "input", uncut_max,
                           std::string(instruction) + std::get<std::string>(input),
                           {.add_special = true, .parse_special = true}));
    }
    truncate(request.truncation, in.tokens_max, prompts.back());
    const auto length = static_cast<int64_t>(prompts.back().size());
    if (length == 0)
      return out_of_range(request.inputs.size() > 1 ? "input[" + std::to_string(i) + "]" : "input",
                          "expected at least one token, found an empty text");
    WEIR_TRY(check_prompt_length(config, "input", length, 0, in.tokens_max));
  }
  return prompts;
}

Result<std::string> answer_json(const Form& form, const std::string& model,
                                std::span<OwnedRequest> requests, int64_t prompt_tokens) {
  std::string out;
  out.reserve(requests.size() *
              embedding_json_bytes(static_cast<size_t>(form.dimensions), form.base64));
  JsonWriter json(out);
  json.begin_object().field("object", "list").key("data").begin_array();
  for (size_t i = 0; i < requests.size(); ++i) {
    std::vector<float>& vector = requests[i].request->pooled;
    finish_embedding(vector, form.dimensions, form.norm);
    if (!std::ranges::all_of(vector, [](float x) { return std::isfinite(x); }))
      return fail(ErrorCode::kIo, "The model gave a hidden state that is not finite.");
    json.begin_object().field("object", "embedding");
    json.field("index", static_cast<int64_t>(i)).key("embedding");
    if (form.base64) {
      std::string text;
      append_base64(text, std::as_bytes(std::span(vector)));  // Little-endian, as x86 has it.
      json.value(text);
    } else {
      json.begin_array();
      for (const float x : vector) json.value(x);
      json.end_array();
    }
    json.end_object();
  }
  json.end_array().field("model", model).key("usage").begin_object();
  json.field("prompt_tokens", prompt_tokens);
  json.field("total_tokens", prompt_tokens).end_object().end_object();
  return out;
}

}  // namespace

Result<PreparedBatch> prepare_embeddings(const ApiConfig& config, MemoryBudget& budget,
                                         const PrepareInput& in) {
  WEIR_ASSIGN(const EmbeddingRequest request,
              parse_embedding(in.body, config.hidden_size, RequestLimits{config.vocab_size}));
  WEIR_TRY(check_model(config, request.model));
  if (!config.embedding.refusal.empty())
    return weir::fail(ErrorCode::kUnsupported,
                      "Unsupported: this model's embeddings (" + config.embedding.refusal +
                          "; --pooling overrules it).",
                      "model", "unsupported_endpoint");
  WEIR_ASSIGN(auto prompts, tokenise_inputs(config, in, request));

  PreparedBatch answer;
  answer.ignored = request.ignored;
  const Form form{
      .base64 = request.base64,
      .dimensions = static_cast<int32_t>(request.dimensions.value_or(config.hidden_size)),
      .norm = request.norm.value_or(config.embedding.normalise ? kNormEuclid : kNormNone)};
  const auto width = static_cast<size_t>(config.hidden_size);
  size_t bytes = 0;
  for (const auto& prompt : prompts) bytes += pooled_request_bytes(prompt.size(), width);
  const size_t text_bytes =
      prompts.size() * embedding_bytes(static_cast<size_t>(form.dimensions), form.base64);
  WEIR_TRY(check_memory(budget, "input", bytes + text_bytes, "fewer inputs"));
  WEIR_ASSIGN(answer.whole, lease(budget, in.caller, bytes + text_bytes));
  for (std::vector<int32_t>& prompt : prompts) {
    OwnedRequest owned;
    owned.lease = answer.whole.part(pooled_request_bytes(prompt.size(), width));
    owned.request = std::make_unique<sched::Request>(std::move(prompt), sample::SamplingParams(),
                                                     /*max_tokens=*/0, /*logprobs=*/false);
    owned.request->pooling = config.embedding.pooling;
    owned.request->pooled.resize(width);
    owned.request->arrived = in.arrived;
    owned.request->priority = in.priority_min.value_or(0);
    owned.request->caller = in.caller;
    answer.requests.push_back(std::move(owned));
  }
  answer.write = [form, model = config.model_id](std::span<OwnedRequest> requests,
                                                 int64_t prompt_tokens) {
    return answer_json(form, model, requests, prompt_tokens);
  };
  return answer;
}

void finish_embedding(std::vector<float>& pooled, int32_t dimensions, int32_t norm) {
  pooled.resize(static_cast<size_t>(dimensions));
  if (norm == kNormNone) return;
  double length = 0;
  for (const float x : pooled) {
    const double size = std::abs(double{x});
    length = norm == kNormMax ? std::max(length, size / 32760)
                              : length + (norm == kNormEuclid ? size * size : std::pow(size, norm));
  }
  if (norm > 1) length = std::pow(length, 1.0 / norm);
  if (!(length > 0)) return;
  for (float& x : pooled) x = static_cast<float>(x / length);
}

}  // namespace weir::api
