#include "api/embeddings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "api/base64.h"
#include "api/memory_cost.h"
#include "base/check.h"
#include "base/json.h"

namespace weir::api {

namespace {

// Requests of one answer that the engine has at once, at most, and never more than half its queue:
// twice what a step of 512 tokens holds of sentences with four.
constexpr size_t kOpenMax = 256;

double seconds(sched::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

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
  std::vector<std::vector<int32_t>> prompts;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const Prompt& input = request.inputs[i];
    if (const auto* ids = std::get_if<std::vector<int32_t>>(&input)) {
      prompts.push_back(*ids);
    } else {
      WEIR_ASSIGN(prompts.emplace_back(),
                  tokenise(config, "input", in.tokens_max,
                           std::string(instruction) + std::get<std::string>(input),
                           {.add_special = true, .parse_special = true}));
    }
    const auto length = static_cast<int64_t>(prompts.back().size());
    if (length == 0)
      return out_of_range(request.inputs.size() > 1 ? "input[" + std::to_string(i) + "]" : "input",
                          "expected at least one token, found an empty text");
    WEIR_TRY(check_prompt_length(config, "input", length, 0, in.tokens_max));
  }
  return prompts;
}

}  // namespace

Result<PreparedEmbeddings> prepare_embeddings(const ApiConfig& config, MemoryBudget& budget,
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

  PreparedEmbeddings answer;
  answer.base64 = request.base64;
  answer.dimensions = static_cast<int32_t>(request.dimensions.value_or(config.hidden_size));
  answer.norm = request.norm.value_or(config.embedding.normalise ? kNormEuclid : kNormNone);
  const auto width = static_cast<size_t>(config.hidden_size);
  size_t bytes = 0;
  for (const auto& prompt : prompts) bytes += pooled_request_bytes(prompt.size(), width);
  const size_t text_bytes =
      prompts.size() * embedding_bytes(static_cast<size_t>(answer.dimensions), answer.base64);
  WEIR_TRY(check_memory(budget, "input", bytes + text_bytes, "fewer inputs"));
  WEIR_ASSIGN(answer.whole, lease(budget, text_bytes));
  for (std::vector<int32_t>& prompt : prompts) {
    OwnedRequest owned;
    WEIR_ASSIGN(owned.lease, lease(budget, pooled_request_bytes(prompt.size(), width)));
    owned.request = std::make_unique<sched::Request>(std::move(prompt), sample::SamplingParams(),
                                                     /*max_tokens=*/0, /*logprobs=*/false);
    owned.request->pooling = config.embedding.pooling;
    owned.request->pooled.resize(width);
    owned.request->arrived = in.arrived;
    owned.request->priority = in.priority_min.value_or(0);
    answer.requests.push_back(std::move(owned));
  }
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

EmbeddingAnswer::EmbeddingAnswer(StreamHost& host, ExchangePtr exchange,
                                 PreparedEmbeddings prepared, std::string model)
    : host_(host),
      exchange_(std::move(exchange)),
      prepared_(std::move(prepared)),
      model_(std::move(model)) {
  for (const OwnedRequest& owned : prepared_.requests)
    figures_.prompt_tokens += std::ssize(owned.request->prompt);
}

Result<void> EmbeddingAnswer::submit() {
  if (Result<void> submitted = submit_more(); !submitted && open_.empty()) {
    ended_ = true;
    return submitted;
  }
  exchange_->responder().on_closed([weak = weak_from_this()] {
    if (const auto answer = weak.lock()) answer->abandon();
  });
  return {};
}

// The error of the first request that the engine does not take.
Result<void> EmbeddingAnswer::submit_more() {
  const size_t open_max =
      std::clamp<size_t>(static_cast<size_t>(host_.engine->queue_max()) / 2, 1, kOpenMax);
  while (next_ < prepared_.requests.size() && open_.size() < open_max) {
    WEIR_TRY(host_.engine->submit(prepared_.requests[next_].request.get()));
    open_.push_back(next_++);
  }
  return {};
}

void EmbeddingAnswer::poll() {
  if (ended_ || writing_) return;
  take_finished();
  if (ended_) return;
  // A full queue may have room when the next step is through, or at the latest with the next tick.
  if (const Result<void> more = submit_more(); !more && more.error().code != ErrorCode::kOverloaded)
    return fail(more.error());
  if (open_.empty() && next_ == prepared_.requests.size()) write();
}

void EmbeddingAnswer::take_finished() {
  for (size_t i = 0; i < open_.size();) {
    const sched::Request& request = *prepared_.requests[open_[i]].request;
    const FinishReason reason = request.log.finish_reason();
    if (reason == FinishReason::kNone) {
      ++i;
      continue;
    }
    if (reason == FinishReason::kCancelled)
      return fail(Error{ErrorCode::kUnavailable, "The server is shutting down."});
    if (reason == FinishReason::kError)
      return fail(Error{ErrorCode::kIo, "The engine could not go on with this input."});
    figures_.cached_tokens += request.cached_tokens;
    figures_.queue_s = seconds(request.started - request.arrived);
    figures_.first_token_s = seconds(request.first_token - request.arrived);
    open_[i] = open_.back();
    open_.pop_back();
  }
}

// Every vector is there. Millions of numbers take a while to write.
void EmbeddingAnswer::write() {
  struct Task {
    std::string json;
  };
  const auto task = std::make_shared<Task>();
  writing_ = host_.loop->run_in_pool(
      [task, self = shared_from_this()] { task->json = self->answer_json(); },
      [task, self = shared_from_this()] {
        self->writing_ = false;
        if (self->ended_) return;
        if (task->json.empty())
          return self->fail(
              Error{ErrorCode::kIo, "The model gave a hidden state that is not finite."});
        self->ended_ = true;
        self->host_.stats->prompt_tokens.add(static_cast<uint64_t>(self->figures_.prompt_tokens));
        self->host_.stats->cached_prompt_tokens.add(
            static_cast<uint64_t>(self->figures_.cached_tokens));
        self->host_.stats->answer_time.observe(
            seconds(sched::Clock::now() - self->exchange_->arrived()));
        self->exchange_->set_figures(self->figures_);
        self->exchange_->respond_json(task->json);
      });
}

// Empty if a number is not finite.
std::string EmbeddingAnswer::answer_json() {
  std::string out;
  out.reserve(prepared_.requests.size() *
              embedding_json_bytes(static_cast<size_t>(prepared_.dimensions), prepared_.base64));
  JsonWriter json(out);
  json.begin_object().field("object", "list").key("data").begin_array();
  for (size_t i = 0; i < prepared_.requests.size(); ++i) {
    std::vector<float>& vector = prepared_.requests[i].request->pooled;
    finish_embedding(vector, prepared_.dimensions, prepared_.norm);
    if (!std::ranges::all_of(vector, [](float x) { return std::isfinite(x); })) return {};
    json.begin_object().field("object", "embedding");
    json.field("index", static_cast<int64_t>(i)).key("embedding");
    if (prepared_.base64) {
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
  json.end_array().field("model", model_).key("usage").begin_object();
  json.field("prompt_tokens", figures_.prompt_tokens);
  json.field("total_tokens", figures_.prompt_tokens).end_object().end_object();
  return out;
}

void EmbeddingAnswer::fail(const Error& error) {
  if (ended_) return;
  end_requests();
  host_.stats->failures.add();
  exchange_->set_figures(figures_);
  exchange_->respond_error(error);
}

void EmbeddingAnswer::abandon() {
  if (ended_) return;
  end_requests();
  exchange_->set_figures(figures_);
  exchange_->abandon();
}

void EmbeddingAnswer::end_requests() {
  ended_ = true;
  for (const size_t index : open_) {
    OwnedRequest& owned = prepared_.requests[index];
    if (owned.request->log.finished()) continue;
    host_.engine->cancel(owned.request.get());
    host_.retired.push_back(std::move(owned));
  }
  open_.clear();
}

}  // namespace weir::api
