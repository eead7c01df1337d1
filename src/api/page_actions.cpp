// The endpoints that compute no token: what is stored, what the server is and does, and texts
// turned into tokens and back.
#include <ctime>
#include <utility>

#include "api/anthropic/count_tokens.h"
#include "api/anthropic/message_error.h"
#include "api/anthropic/model_pages.h"
#include "api/api_impl.h"
#include "api/llama/token_endpoints.h"
#include "api/ollama/error.h"
#include "api/pages/front_page.h"
#include "api/pages/server_pages.h"
#include "api/responses/responses.h"
#include "api/serving/model_name.h"
#include "base/json.h"

namespace weir::api {

namespace {

void respond_page(Exchange& exchange, const Result<std::string>& page) {
  if (!page) return exchange.respond_error(page.error());
  exchange.respond_json(*page);
}

}  // namespace

void Api::Impl::respond_from_pool(
    const ExchangePtr& exchange, std::function<Result<std::string>(const std::string& body)> work) {
  in_pool<std::string>(exchange, std::move(work), [exchange](const Result<std::string>& page) {
    respond_page(*exchange, page);
  });
}

void Api::Impl::response_tokens(const ExchangePtr& exchange, const net::RouteParams&) {
  respond_from_pool(exchange,
                    [this, in = prepare_input(*exchange),
                     input = responses_input(*exchange)](const std::string& body) mutable {
                      in.body = body;
                      return responses::count_response_tokens(serving, in, input);
                    });
}

void Api::Impl::cancel_response(const ExchangePtr& exchange, const net::RouteParams& params) {
  exchange->respond_error(
      responses::cancel_error(response_store, params["id"], exchange->owner(), std::time(nullptr)));
}

responses::StoredQuery Api::Impl::stored_query(const Exchange& exchange,
                                               const net::RouteParams& params) {
  return {.store = &response_store,
          .preparing = &body_budget,
          .caller = exchange.caller(),
          .id = std::string(params["id"]),
          .owner = exchange.owner(),
          .now = std::time(nullptr),
          .query = exchange.request().query};
}

void Api::Impl::response(const ExchangePtr& exchange, const net::RouteParams& params) {
  const Result<bool> events = responses::wants_events(exchange->request().query);
  if (!events) return exchange->respond_error(events.error());
  if (*events)
    return in_pool<std::string>(
        exchange,
        [in = stored_query(*exchange, params)](const std::string&) {
          return responses::response_events_page(in);
        },
        [exchange](const Result<std::string>& page) {
          if (!page) return exchange->respond_error(page.error());
          exchange->respond(200, "text/event-stream; charset=utf-8", *page);
        });
  respond_page(*exchange, responses::response_page(response_store, params["id"], exchange->owner(),
                                                   std::time(nullptr)));
}

void Api::Impl::delete_response(const ExchangePtr& exchange, const net::RouteParams& params) {
  respond_page(*exchange, responses::delete_response_page(response_store, params["id"],
                                                          exchange->owner(), std::time(nullptr)));
}

void Api::Impl::response_input(const ExchangePtr& exchange, const net::RouteParams& params) {
  respond_from_pool(exchange, [in = stored_query(*exchange, params)](const std::string&) {
    return responses::input_items_page(in);
  });
}

void Api::Impl::count_tokens(const ExchangePtr& exchange, const net::RouteParams&) {
  respond_from_pool(
      exchange, [this, now = std::time(nullptr), tokens = tokens_max()](const std::string& body) {
        return anthropic::count_tokens(serving, body, now, tokens);
      });
}

void Api::Impl::models(const ExchangePtr& exchange, const net::RouteParams&) {
  exchange->respond_json(anthropic::speaks_anthropic(exchange->request())
                             ? anthropic::models_page(config, exchange->request().query)
                             : pages::models_page(config, tokens_max()));
}

void Api::Impl::model(const ExchangePtr& exchange, const net::RouteParams& params) {
  const std::string& id = params["id"];
  if (const Result<void> known = check_model(config, id); !known)
    return exchange->respond_error(known.error());
  exchange->respond_json(anthropic::speaks_anthropic(exchange->request())
                             ? anthropic::model_page(config, id)
                             : pages::model_page(config, id, tokens_max()));
}

// The hub may take seconds, or the client may leave before.
void Api::Impl::search_models(const ExchangePtr& exchange, const net::RouteParams&) {
  Result<ModelSearch> search = model_search(exchange->request().query);
  if (!search) return exchange->respond_error(search.error());
  if (!config.search_models)
    return exchange->respond_error(
        Error{ErrorCode::kUnsupported, "This server does not search for models."});
  exchange->responder().on_closed([weak = std::weak_ptr(exchange)] {
    if (const ExchangePtr left = weak.lock()) left->abandon();
  });
  config.search_models(*std::move(search), [exchange](const Result<std::string>& page) {
    if (!exchange->responder().closed()) respond_page(*exchange, page);
  });
}

void Api::Impl::props(const ExchangePtr& exchange, const net::RouteParams&) {
  exchange->respond_json(pages::props_page(config, tokens_max()));
}

void Api::Impl::tokenizer_info(const ExchangePtr& exchange, const net::RouteParams&) {
  exchange->respond_json(pages::tokenizer_page(config));
}

void Api::Impl::slots(const ExchangePtr& exchange, const net::RouteParams&) {
  const std::string& query = exchange->request().query;
  if (query.find("fail_on_no_slot=1") != std::string::npos && config.parallel > 0 &&
      config.engine->stats().running.value() >= config.parallel)
    return exchange->respond_error(Error{ErrorCode::kUnavailable, "No slot is free."});
  std::vector<OpenRequest> open;
  const sched::Clock::time_point now = sched::Clock::now();
  for (const std::shared_ptr<Stream>& stream : streams) stream->list_open(open, now);
  for (const std::shared_ptr<BatchAnswer>& batch : batches) batch->list_open(open, now);
  exchange->respond_json(pages::slots_page(config, tokens_max(), std::move(open)));
}

void Api::Impl::front_page(const ExchangePtr& exchange, const net::RouteParams&) {
  pages::FrontPage page;
  page.version = config.version;
  if (keys.empty()) page.model = config.model_id;
  page.has_chat = config.chat_template != nullptr;
  const net::HttpResponder::Headers vary{{"Vary", "Accept"}};
  const std::string_view accept = exchange->request().header("accept");
  if (!pages::wants_html(accept))
    return exchange->respond(200, "text/plain; charset=utf-8",
                             config.ollama && !pages::wants_text(accept)
                                 ? "Ollama is running"
                                 : pages::front_page_text(page),
                             vary);
  exchange->respond(200, "text/html; charset=utf-8", pages::front_page_html(page),
                    {vary.front(),
                     {"X-Content-Type-Options", "nosniff"},
                     {"Content-Security-Policy",
                      "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
                      "form-action 'none'; frame-ancestors 'none'"}});
}

void Api::Impl::health(const ExchangePtr& exchange, const net::RouteParams&) {
  if (draining || config.engine->draining())
    return exchange->respond_error(Error{ErrorCode::kUnavailable, "The server is shutting down."});
  // Without the names of files: a probe has shown no key.
  if (config.engine->given_up() != nullptr)
    return exchange->respond_error(
        Error{ErrorCode::kUnavailable,
              "The model's files were changed while it was served; the server must be restarted."});
  exchange->respond_json("{\"status\":\"ok\"}");
}

void Api::Impl::metrics(const ExchangePtr& exchange, const net::RouteParams&) {
  const MetricsFacts facts{.model = config.model_id,
                           .version = config.version,
                           .commit = config.commit,
                           .kernels = config.kernels,
                           .context_max = config.context_max,
                           .running_max = config.parallel,
                           .open_max = config.engine->queue_max()};
  std::string page = metrics_page(stats, config.engine->stats(), http_stats, facts);
  render_keys(page, keys);
  render_adapters(page);
  if (more_metrics) more_metrics(page);
  exchange->respond(200, "text/plain; version=0.0.4; charset=utf-8", page);
}

void Api::Impl::version(const ExchangePtr& exchange, const net::RouteParams&) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().field("version", config.version).field("commit", config.commit).end_object();
  exchange->respond_json(body);
}

void Api::Impl::openapi(const ExchangePtr& exchange, const net::RouteParams&) {
  respond_from_pool(exchange, [this](const std::string&) -> Result<std::string> {
    std::vector<EndpointDoc> endpoints = Api::endpoints();
    if (!config.ollama)
      std::erase_if(endpoints, [](const EndpointDoc& endpoint) {
        return ollama::is_ollama_path(endpoint.path);
      });
    return openapi_json(endpoints, config.version);
  });
}

void Api::Impl::tokenize_text(const ExchangePtr& exchange, const net::RouteParams&) {
  respond_from_pool(
      exchange, [this, now = std::time(nullptr), tokens = tokens_max()](const std::string& body) {
        return llama::tokenize(serving, body, now, tokens);
      });
}

void Api::Impl::apply_template(const ExchangePtr& exchange, const net::RouteParams&) {
  respond_from_pool(exchange, [this, now = std::time(nullptr)](const std::string& body) {
    return llama::apply_template(serving, body, now);
  });
}

void Api::Impl::detokenize_ids(const ExchangePtr& exchange, const net::RouteParams&) {
  respond_from_pool(exchange, [this, tokens = tokens_max()](const std::string& body) {
    return llama::detokenize(config, body, tokens);
  });
}

}  // namespace weir::api
