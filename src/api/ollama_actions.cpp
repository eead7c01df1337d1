// Ollama's endpoints: answers as others compute them, and the store of models.
#include <memory>
#include <string>
#include <utility>

#include "api/api_impl.h"
#include "api/ollama/embed.h"
#include "api/ollama/error.h"
#include "api/ollama/model_pages.h"
#include "api/ollama/names.h"
#include "api/ollama/protocol.h"
#include "api/request/keep_alive.h"

namespace weir::api {

void Api::Impl::ollama_chat(const ExchangePtr& exchange, const net::RouteParams&) {
  ollama_answer(ollama::make_chat_protocol(), exchange);
}

void Api::Impl::ollama_generate(const ExchangePtr& exchange, const net::RouteParams&) {
  ollama_answer(ollama::make_generate_protocol(), exchange);
}

void Api::Impl::ollama_answer(const std::shared_ptr<ollama::OllamaProtocol>& protocol,
                              const ExchangePtr& exchange) {
  prepare(
      protocol, exchange,
      [this, exchange, protocol](const ModelUsePtr& use, PreparedAnswer prepared) {
        if (const auto& order = protocol->order()) return fulfil(*order, exchange);
        if (const auto seconds = protocol->keep_alive_s(); seconds && may_manage(*exchange))
          registry.keep_alive(use->lease.model(), whole_seconds(*seconds));
        auto shape = protocol->shape(prepared);
        begin_stream(use, exchange, std::move(prepared), std::move(shape));
      },
      /*events=*/false);
}

bool Api::Impl::may_manage(const Exchange& exchange) const {
  return !entrance.refusal(exchange.request(), Access::kAdmin, exchange.key(), !keys.empty());
}

// To load a model is what any request for it does; to unload it takes it from everybody.
void Api::Impl::fulfil(const ollama::ModelOrder& order, const ExchangePtr& exchange) {
  if (order.unload) {
    auto refusal =
        entrance.refusal(exchange->request(), Access::kAdmin, exchange->key(), !keys.empty());
    if (refusal) return exchange->respond_error(refusal->error, std::move(refusal->headers));
  }
  exchange->responder().on_closed([weak = std::weak_ptr(exchange)] {
    if (const ExchangePtr left = weak.lock()) left->abandon();
  });
  const auto answer = [exchange, order](const Result<void>& done) {
    if (exchange->responder().closed()) return;
    if (!done) return exchange->respond_error(done.error());
    exchange->respond(200, order.facts.stream ? "application/x-ndjson" : "application/json",
                      ollama::empty_answer(order.facts, order.unload ? "unload" : "load"));
  };
  if (order.unload)
    model_store->unload(order.model, answer);
  else
    model_store->load(order.model, order.keep_alive_s, answer);
}

void Api::Impl::ollama_embed(const ExchangePtr& exchange, const net::RouteParams&) {
  answer_batch(exchange, &ollama::prepare_embed);
}

void Api::Impl::ollama_embeddings(const ExchangePtr& exchange, const net::RouteParams&) {
  answer_batch(exchange, &ollama::prepare_embeddings);
}

void Api::Impl::ollama_version(const ExchangePtr& exchange, const net::RouteParams&) {
  exchange->respond_json(ollama::version_page());
}

void Api::Impl::ollama_tags(const ExchangePtr& exchange, const net::RouteParams&) {
  exchange->respond_json(ollama::tags_page(model_store->list()));
}

void Api::Impl::ollama_ps(const ExchangePtr& exchange, const net::RouteParams&) {
  exchange->respond_json(ollama::ps_page(model_store->list()));
}

// The body of a request about a model, and then what becomes of it.
void Api::Impl::about_model(const ExchangePtr& exchange,
                            Result<ollama::ModelBody> (*parse)(std::string_view),
                            std::function<void(const ollama::ModelBody& body)> call) {
  in_pool<ollama::ModelBody>(
      exchange, [parse](const std::string& body) { return parse(body); },
      [exchange, call = std::move(call)](const Result<ollama::ModelBody>& body) {
        if (!body) return exchange->respond_error(body.error());
        call(*body);
      });
}

void Api::Impl::ollama_show(const ExchangePtr& exchange, const net::RouteParams&) {
  about_model(exchange, &ollama::parse_show, [this, exchange](const ollama::ModelBody& body) {
    const Result<ModelDetails> model = model_store->find(ollama::bare_name(body.model));
    if (!model) return exchange->respond_error(ollama::not_found(body.model));
    exchange->respond_json(ollama::show_page(*model));
  });
}

void Api::Impl::ollama_pull(const ExchangePtr& exchange, const net::RouteParams&) {
  about_model(exchange, &ollama::parse_pull, [this, exchange](const ollama::ModelBody& body) {
    const auto answer = std::make_shared<ollama::PullAnswer>(exchange, body.stream);
    pulls.push_back(answer);
    answer->begin(*model_store, std::string(ollama::bare_name(body.model)));
    reap();
  });
}

void Api::Impl::ollama_delete(const ExchangePtr& exchange, const net::RouteParams&) {
  about_model(exchange, &ollama::parse_delete, [this, exchange](const ollama::ModelBody& body) {
    exchange->responder().on_closed([weak = std::weak_ptr(exchange)] {
      if (const ExchangePtr left = weak.lock()) left->abandon();
    });
    model_store->remove(
        std::string(ollama::bare_name(body.model)),
        [exchange, name = body.model](const Result<void>& removed) {
          if (exchange->responder().closed()) return;
          if (removed) return exchange->respond(200, "text/plain; charset=utf-8", {});
          const bool unknown = removed.error().code == ErrorCode::kNotFound;
          exchange->respond_error(unknown ? ollama::not_found(name) : removed.error());
        });
  });
}

// Models are files of a hub here: none is built, and none goes out.
void Api::Impl::ollama_refuse(const ExchangePtr& exchange, const net::RouteParams&) {
  exchange->respond_error(ollama::not_implemented("make, copy or publish models"));
}

}  // namespace weir::api
