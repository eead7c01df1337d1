// The endpoints whose answers are computed: a body becomes engine requests in the pool, and these a
// Stream or a BatchAnswer on the loop.
#include <ctime>
#include <utility>

#include "api/anthropic/protocol.h"
#include "api/api_impl.h"
#include "api/exchange/api_error.h"
#include "api/llama/protocol.h"
#include "api/openai/protocol.h"
#include "api/responses/responses.h"
#include "api/transcription/transcription.h"
#include "api/vectors/embeddings.h"
#include "api/vectors/rerank.h"

namespace weir::api {

PrepareInput Api::Impl::prepare_input(const Exchange& exchange, const ServedModel& model) const {
  PrepareInput input;
  input.arrived = exchange.arrived();
  input.now = std::time(nullptr);
  input.random_seed = random_bits();
  input.tokens_max = model.tokens_max();
  input.caller = exchange.caller();
  input.interrupt = std::make_shared<grammar::Interrupt>();
  input.media = std::make_shared<MediaSet>();
  if (const Key* const key = exchange.key()) {
    input.priority_min = key->spec().priority.value_or(0);
    if (model.config.engine->keeps_on_disk()) input.key_name = key->name();
  }
  return input;
}

void Api::Impl::generate(const std::shared_ptr<Protocol>& protocol, const ExchangePtr& exchange) {
  prepare(
      protocol, exchange,
      [this, exchange, protocol](const ModelUsePtr& use, PreparedAnswer prepared) {
        auto shape = protocol->shape(prepared);
        begin_stream(use, exchange, std::move(prepared), std::move(shape));
      },
      /*events=*/true);
}

void Api::Impl::prepare(const std::shared_ptr<Protocol>& protocol, const ExchangePtr& exchange,
                        Prepared then, bool events) {
  const auto work = [this, protocol, exchange, then = std::move(then)](const ModelUsePtr& use) {
    PrepareInput input = prepare_input(*exchange, *use->model);
    in_pool<PreparedAnswer>(
        exchange,
        [this, use, input, protocol](const std::string& body) mutable {
          input.body = body;
          return protocol->prepare(use->model->serving, budget, input);
        },
        [use, exchange, then](Result<PreparedAnswer> prepared) {
          if (!prepared) return exchange->respond_error(prepared.error());
          then(use, std::move(*prepared));
        },
        input.interrupt, input.media);
  };
  with_model(exchange, work, events);
}

void Api::Impl::begin_stream(const ModelUsePtr& use, const ExchangePtr& exchange,
                             PreparedAnswer prepared, std::unique_ptr<AnswerShape> shape) {
  int64_t prompt_tokens = 0;
  const auto per_prompt = static_cast<size_t>(prepared.options.choices_per_prompt);
  for (size_t i = 0; i < prepared.requests.size(); i += per_prompt)
    prompt_tokens += std::ssize(prepared.requests[i].request->prompt);
  const auto choices = static_cast<int32_t>(prepared.requests.size());
  if (const auto refusal = exchange->take_choices(choices))
    return exchange->respond_refusal(*refusal);
  if (const auto refusal = exchange->take_prompt_tokens(prompt_tokens))
    return exchange->respond_refusal(*refusal);

  exchange->set_ignored(prepared.options.ignored);
  for (OwnedRequest& owned : prepared.requests) owned.request->id = next_request_id++;
  ServedModel& model = *use->model;
  const auto stream =
      std::make_shared<Stream>(model.host, exchange, std::move(prepared), std::move(shape));
  enter_queue(model, exchange, choices, [this, &model, exchange, stream] {
    if (const Result<void> submitted = stream->submit(); !submitted)
      return exchange->respond_error(submitted.error());
    model.streams.push_back(stream);
    show_open_answers();
    stream->poll(sched::Clock::now());  // The engine may have been quick.
  });
}

void Api::Impl::answer_batch(const ExchangePtr& exchange, BatchPreparer prepare_batch,
                             bool media) {
  const auto work = [this, exchange, prepare_batch, media](const ModelUsePtr& use) {
    PrepareInput input = prepare_input(*exchange, *use->model);
    input.answer_id = random_id({});
    input.content_type = exchange->request().header("content-type");
    input.media_budget = &media_budget;
    in_pool<PreparedBatch>(
        exchange,
        [this, use, input, prepare_batch](const std::string& body) mutable {
          input.body = body;
          return prepare_batch(use->model->serving, budget, input);
        },
        [this, use, exchange](Result<PreparedBatch> prepared) {
          if (!prepared) return exchange->respond_error(prepared.error());
          begin_batch(use, exchange, *std::move(prepared));
        },
        input.interrupt, nullptr, media);
  };
  // Answers that are sent whole cannot follow events, whatever their bodies say of `stream`.
  with_model(exchange, work, /*events=*/false);
}

void Api::Impl::begin_batch(const ModelUsePtr& use, const ExchangePtr& exchange,
                            PreparedBatch prepared) {
  exchange->set_ignored(prepared.ignored);
  ServedModel& model = *use->model;
  const auto answer =
      std::make_shared<BatchAnswer>(model.host, exchange, std::move(prepared), next_request_id);
  if (const auto refusal = exchange->take_prompt_tokens(answer->prompt_tokens()))
    return exchange->respond_refusal(*refusal);
  enter_queue(model, exchange, 1, [this, &model, exchange, answer] {
    if (const Result<void> submitted = answer->submit(); !submitted)
      return exchange->respond_error(submitted.error());
    model.batches.push_back(answer);
    show_open_answers();
    answer->poll();  // The engine may have been quick.
  });
}

void Api::Impl::chat_completions(const ExchangePtr& exchange, const net::RouteParams&) {
  generate(openai::make_protocol(openai::Endpoint::kChat), exchange);
}

void Api::Impl::completions(const ExchangePtr& exchange, const net::RouteParams&) {
  generate(openai::make_protocol(openai::Endpoint::kCompletions), exchange);
}

void Api::Impl::infill(const ExchangePtr& exchange, const net::RouteParams&) {
  generate(llama::make_infill_protocol(), exchange);
}

void Api::Impl::llama_completion(const ExchangePtr& exchange, const net::RouteParams&) {
  generate(llama::make_completion_protocol(), exchange);
}

responses::ResponsesInput Api::Impl::responses_input(const Exchange& exchange) {
  return {.id = random_id("resp_"),
          .owner = exchange.owner(),
          .store = &response_store,
          .preparing = &body_budget};
}

void Api::Impl::responses(const ExchangePtr& exchange, const net::RouteParams&) {
  generate(responses::make_protocol(responses_input(*exchange)), exchange);
}

void Api::Impl::messages(const ExchangePtr& exchange, const net::RouteParams&) {
  generate(anthropic::make_protocol(), exchange);
}

void Api::Impl::embeddings(const ExchangePtr& exchange, const net::RouteParams&) {
  answer_batch(exchange, &vectors::prepare_embeddings);
}

void Api::Impl::transcriptions(const ExchangePtr& exchange, const net::RouteParams&) {
  answer_batch(exchange, &transcription::prepare_transcription, /*media=*/true);
}

void Api::Impl::translations(const ExchangePtr& exchange, const net::RouteParams&) {
  answer_batch(exchange, &transcription::prepare_translation, /*media=*/true);
}

void Api::Impl::refuse_speech(const ExchangePtr& exchange, const net::RouteParams&) {
  exchange->respond_error(
      error_of_status(404, "This server speaks no text: none of the model families that it knows "
                           "gives sound."));
}

void Api::Impl::rerank(const ExchangePtr& exchange, const net::RouteParams&) {
  answer_batch(exchange, &vectors::prepare_rerank);
}

void Api::Impl::cohere_rerank(const ExchangePtr& exchange, const net::RouteParams&) {
  answer_batch(exchange, &vectors::prepare_cohere_rerank);
}

void Api::Impl::score(const ExchangePtr& exchange, const net::RouteParams&) {
  answer_batch(exchange, &vectors::prepare_score);
}

}  // namespace weir::api
