#include "api/vectors/embeddings.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "api/memory/memory_cost.h"
#include "api/memory/request_memory.h"
#include "api/prompt/chat_prompt.h"
#include "api/prompt/prompt_limits.h"
#include "api/prompt/prompt_tokens.h"
#include "api/serving/model_name.h"
#include "base/base64.h"
#include "base/json.h"

namespace weir::api::vectors {

namespace {

// What becomes of the pooled states.
struct Form {
  size_t dimensions = 0;
  int32_t norm = kNormEuclid;
};

sched::Pooling pooling_of(card::Pooling pooling) {
  switch (pooling) {
    case card::Pooling::kLast:
      return sched::Pooling::kLast;
    case card::Pooling::kMean:
      return sched::Pooling::kMean;
    case card::Pooling::kCls:
      return sched::Pooling::kCls;
  }
  return sched::Pooling::kNone;
}

// The instruction before each input.
Result<std::string_view> instruction_of(const card::EmbeddingSettings& config,
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

Result<PromptList> tokenise_inputs(const ServingContext& serving, const PrepareInput& in,
                                   const EmbeddingRequest& request) {
  WEIR_ASSIGN(const std::string_view instruction,
              instruction_of(serving.config.embedding, request));
  const int32_t uncut_max = uncut_tokens_max(request.truncation, in.tokens_max);
  const std::string field(request.field);
  PromptList prompts;
  if (request.chat) {
    if (!request.chat->media.empty())
      return unsupported(request.chat->media.front().field, "images and sounds are not embedded");
    WEIR_ASSIGN(const std::string text, render_chat(serving, *request.chat, in.now));
    WEIR_ASSIGN(std::vector<int32_t> prompt,
                tokenise(serving.config, "messages", uncut_max, text,
                         {.add_special = false, .parse_special = true}));
    truncate(request.truncation, in.tokens_max, prompt);
    if (prompt.empty())
      return out_of_range("messages", "expected at least one token, found an empty text");
    WEIR_TRY(check_prompt_length(serving.config, "messages", std::ssize(prompt), 0, in.tokens_max));
    prompts.add(prompt);
  }
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Prompt& input = request.inputs[i];
    std::vector<int32_t> prompt;
    if (const auto* ids = std::get_if<std::vector<int32_t>>(&input)) {
      prompt = *ids;
    } else {
      WEIR_ASSIGN(prompt, tokenise(serving.config, field, uncut_max,
                                   std::string(instruction) + std::get<std::string>(input),
                                   {.add_special = true, .parse_special = true}));
    }
    truncate(request.truncation, in.tokens_max, prompt);
    if (prompt.empty())
      return out_of_range(request.inputs.size() > 1 ? field + "[" + std::to_string(i) + "]" : field,
                          "expected at least one token, found an empty text");
    WEIR_TRY(check_prompt_length(serving.config, field, std::ssize(prompt), 0, in.tokens_max));
    prompts.add(prompt);
  }
  return prompts;
}

class EmbeddingTask final : public PromptTask {
 public:
  EmbeddingTask(const ApiConfig& config, const Form& form, size_t inputs,
                std::unique_ptr<VectorsShape> shape)
      : shape_(std::move(shape)),
        form_(form),
        pooling_(pooling_of(config.embedding.pooling)),
        width_(static_cast<size_t>(config.hidden_size)),
        vectors_(inputs * form.dimensions) {}

  std::unique_ptr<sched::Request> request(std::vector<int32_t> prompt) const override {
    auto request = std::make_unique<sched::Request>(std::move(prompt), sample::SamplingParams(),
                                                    /*max_tokens=*/0, /*logprobs=*/false);
    request->pooling = pooling_;
    request->pooled.resize(width_);
    return request;
  }
  void keep(size_t index, sched::Request& finished) override {
    std::ranges::copy(std::span(finished.pooled).first(form_.dimensions), vector(index).begin());
  }

  Result<size_t> finish() override {
    const size_t count = vectors_.size() / form_.dimensions;
    for (size_t i = 0; i < count; ++i) normalise(vector(i), form_.norm);
    if (!std::ranges::all_of(vectors_, [](float x) { return std::isfinite(x); }))
      return fail(ErrorCode::kIo, "The model gave a hidden state that is not finite.");
    return count;
  }
  void append_head(std::string& out) const override { shape_->append_head(out); }
  void append_item(std::string& out, size_t item) const override {
    if (item > 0) out += ',';
    shape_->append_item(out, item,
                        std::span(vectors_).subspan(item * form_.dimensions, form_.dimensions));
  }
  void append_tail(std::string& out, int64_t prompt_tokens) const override {
    shape_->append_tail(out, prompt_tokens);
  }

 private:
  std::span<float> vector(size_t index) {
    return std::span(vectors_).subspan(index * form_.dimensions, form_.dimensions);
  }

  const std::unique_ptr<VectorsShape> shape_;
  const Form form_;
  const sched::Pooling pooling_;
  const size_t width_;
  std::vector<float> vectors_;  // form_.dimensions of each input.
};

class EmbeddingList final : public VectorsShape {
 public:
  EmbeddingList(std::string model, bool base64) : model_(std::move(model)), base64_(base64) {}

  void append_head(std::string& out) const override { out += R"({"object":"list","data":[)"; }
  void append_item(std::string& out, size_t item, std::span<const float> vector) const override;
  void append_tail(std::string& out, int64_t prompt_tokens) const override {
    out += "],";
    JsonWriter json(out);
    json.field("model", model_).key("usage").begin_object();
    json.field("prompt_tokens", prompt_tokens);
    json.field("total_tokens", prompt_tokens).end_object().end_object();
  }

 private:
  const std::string model_;
  const bool base64_;
};

void EmbeddingList::append_item(std::string& out, size_t item,
                                std::span<const float> vector) const {
  JsonWriter json(out);
  json.begin_object().field("object", "embedding");
  json.field("index", static_cast<int64_t>(item)).key("embedding");
  if (base64_) {
    out += '"';
    append_base64(out, std::as_bytes(vector));  // Little-endian, as x86 has it.
    out += '"';
  } else {
    json.begin_array();
    for (const float x : vector) json.value(x);
    json.end_array();
  }
  json.end_object();
}

}  // namespace

Result<PreparedBatch> prepare_embeddings(const ServingContext& serving, MemoryBudget& budget,
                                         const PrepareInput& in) {
  WEIR_ASSIGN(const EmbeddingRequest request,
              parse_embedding(in.body, serving.config.hidden_size,
                              RequestLimits{serving.config.vocab_size}));
  return prepare_vectors(serving, budget, in, request,
                         std::make_unique<EmbeddingList>(serving.config.model_id, request.base64));
}

Result<PreparedBatch> prepare_vectors(const ServingContext& serving, MemoryBudget& budget,
                                      const PrepareInput& in, const EmbeddingRequest& request,
                                      std::unique_ptr<VectorsShape> shape) {
  WEIR_ASSIGN(ChosenAdapter adapter, choose_model(serving.config, request.model));
  if (!serving.config.embedding.refusal.empty())
    return weir::fail(ErrorCode::kUnsupported,
                      "Unsupported: this model's embeddings (" + serving.config.embedding.refusal +
                          "; --pooling overrules it).",
                      "model", "unsupported_endpoint");
  WEIR_ASSIGN(PromptList prompts, tokenise_inputs(serving, in, request));

  const Form form{
      .dimensions = static_cast<size_t>(request.dimensions.value_or(serving.config.hidden_size)),
      .norm = request.norm.value_or(serving.config.embedding.normalise ? kNormEuclid : kNormNone)};
  PreparedBatch batch;
  batch.adapter = std::move(adapter);
  batch.ignored = request.ignored;
  const size_t request_bytes = pooled_request_bytes(static_cast<size_t>(serving.config.hidden_size));
  batch.lent_bytes = lent_bytes(prompts, request_bytes, budget.bytes_max());
  batch.prompt_tokens = static_cast<int64_t>(prompts.tokens());
  const size_t computing = prompts.memory_bytes() + batch.lent_bytes;
  const size_t whole = vectors_bytes(prompts.size(), form.dimensions, request.base64);
  WEIR_TRY(check_memory(budget, std::string(request.field), computing + whole, "fewer inputs"));
  WEIR_ASSIGN(batch.whole, lease(budget, in.caller, computing + whole));
  batch.computing = batch.whole.part(computing);
  batch.priority = in.priority_min;
  auto task =
      std::make_unique<EmbeddingTask>(serving.config, form, prompts.size(), std::move(shape));
  task->set_prompts(std::move(prompts), request_bytes);
  batch.task = std::move(task);
  return batch;
}

void normalise(std::span<float> vector, int32_t norm) {
  if (norm == kNormNone) return;
  double length = 0;
  for (const float x : vector) {
    const double size = std::abs(double{x});
    length = norm == kNormMax ? std::max(length, size / 32760)
                              : length + (norm == kNormEuclid ? size * size : std::pow(size, norm));
  }
  if (norm > 1) length = std::pow(length, 1.0 / norm);
  if (!(length > 0)) return;
  for (float& x : vector) x = static_cast<float>(x / length);
}

}  // namespace weir::api::vectors
