// The endpoints that compute no token: what is stored, what the server is and does, and texts
// turned into tokens and back.
#include <ctime>
#include <utility>

#include "api/anthropic/count_tokens.h"
#include "api/anthropic/message_error.h"
#include "api/api_impl.h"
#include "api/llama/token_endpoints.h"
#include "api/ollama/error.h"
#include "api/pages/front_page.h"
#include "api/pages/server_pages.h"
#include "api/pages/ui.h"
#include "api/responses/responses.h"
#include "base/check.h"
#include "base/json.h"

namespace weir::api {

namespace {

const sched::EngineStats& stats_of(const std::shared_ptr<ServedModel>& model) {
  static const sched::EngineStats kNone;  // While no model is loaded.
  return model ? model->config.engine->stats() : kNone;
}

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

void Api::Impl::respond_with_model(const ExchangePtr& exchange, ModelPage work) {
  with_model(exchange, [this, exchange, work = std::move(work)](const ModelUsePtr& use) {
    respond_from_pool(exchange,
                      [use, work](const std::string& body) { return work(*use->model, body); });
  });
}

void Api::Impl::count_with_model(const ExchangePtr& exchange, TokenCounter count) {
  with_model(exchange, [this, exchange, count = std::move(count)](const ModelUsePtr& use) {
    const PrepareInput input = prepare_input(*exchange, *use->model);
    in_pool<std::string>(
        exchange,
        [use, in = input, count](const std::string& body) mutable {
          in.body = body;
          return count(use->model->serving, in);
        },
        [exchange](const Result<std::string>& page) { respond_page(*exchange, page); },
        input.interrupt, input.media);
  });
}

void Api::Impl::response_tokens(const ExchangePtr& exchange, const net::RouteParams&) {
  count_with_model(exchange, [input = responses_input(*exchange)](const ServingContext& serving,
                                                                  const PrepareInput& in) {
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
  count_with_model(exchange, [](const ServingContext& serving, const PrepareInput& in) {
    return anthropic::count_tokens(serving, in);
  });
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
  if (const auto model = asked_model(exchange))
    exchange->respond_json(pages::props_page(model->config, model->tokens_max()));
}

void Api::Impl::tokenizer_info(const ExchangePtr& exchange, const net::RouteParams&) {
  if (const auto model = asked_model(exchange))
    exchange->respond_json(pages::tokenizer_page(model->config));
}

void Api::Impl::slots(const ExchangePtr& exchange, const net::RouteParams&) {
  const auto model = asked_model(exchange);
  if (!model) return;
  const ApiConfig& of = model->config;
  const std::string& query = exchange->request().query;
  if (query.find("fail_on_no_slot=1") != std::string::npos && of.parallel > 0 &&
      of.engine->stats().running.value() >= of.parallel)
    return exchange->respond_error(Error{ErrorCode::kUnavailable, "No slot is free."});
  std::vector<OpenRequest> open;
  const sched::Clock::time_point now = sched::Clock::now();
  for (const std::shared_ptr<Stream>& stream : model->streams) stream->list_open(open, now);
  for (const std::shared_ptr<BatchAnswer>& batch : model->batches) batch->list_open(open, now);
  exchange->respond_json(pages::slots_page(of, model->tokens_max(), std::move(open)));
}

void Api::Impl::ui_file(const ExchangePtr& exchange, const net::RouteParams&) {
  auto answer = pages::ui_answer(exchange->request());
  CHECK(answer.has_value());  // Of every path that the route takes.
  exchange->respond(answer->status, answer->type, answer->body, std::move(answer->headers));
}

void Api::Impl::front_page(const ExchangePtr& exchange, const net::RouteParams& params) {
  if (config.ui && pages::ui_answer(exchange->request())) return ui_file(exchange, params);
  pages::FrontPage page;
  page.version = config.version;
  const std::shared_ptr<ServedModel> first = first_loaded();
  if (keys.empty() && first) page.model = first->config.model_id;
  page.has_chat = first && first->config.chat_template != nullptr;
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
  const auto says_draining = [](const std::shared_ptr<ServedModel>& model) {
    return model && model->config.engine->draining();
  };
  if (draining || (registry.only_one() && says_draining(served[0])))
    return exchange->respond_error(Error{ErrorCode::kUnavailable, "The server is shutting down."});
  // Without the names of files: a probe has shown no key.
  if (registry.only_one() && served[0]->config.engine->given_up() != nullptr)
    return exchange->respond_error(
        Error{ErrorCode::kUnavailable,
              "The model's files were changed while it was served; the server must be restarted."});
  if (!registry.ready())
    return exchange->respond_error(
        Error{ErrorCode::kUnavailable, "The models are still loading; try again later."});
  exchange->respond_json("{\"status\":\"ok\"}");
}

// Of several models the page has the figures of each by its label, and those of an engine of the
// model that is asked for, or of the first.
void Api::Impl::metrics(const ExchangePtr& exchange, const net::RouteParams&) {
  const bool any = registry.only_one() || !exchange->request().query.empty();
  const std::shared_ptr<ServedModel> model = any ? asked_model(exchange) : first_loaded();
  if (any && !model) return;
  const MetricsFacts facts{.model = model ? model->config.model_id : std::string_view(),
                           .version = config.version,
                           .commit = config.commit,
                           .kernels = config.kernels,
                           .context_max = model ? model->config.context_max : 0,
                           .running_max = model ? model->config.parallel : 0,
                           .open_max = model ? model->config.engine->queue_max() : 0};
  std::string page = metrics_page(stats, stats_of(model), http_stats, facts);
  render_keys(page, keys);
  render_adapters(page);
  if (!registry.only_one()) render_models(page);
  if (more_metrics) more_metrics(page);
  exchange->respond(200, "text/plain; version=0.0.4; charset=utf-8", page);
}

pages::Dashboard::Source Api::Impl::dashboard_source() const {
  pages::Dashboard::Source source{.models = {}, .pulls = {}, .api = stats, .http = http_stats};
  for (const std::shared_ptr<ServedModel>& model : served)
    if (model)
      source.models.push_back({.config = model->config,
                               .times = model->host.times,
                               .context_max = model->tokens_max(),
                               .draining = draining || model->config.engine->draining()});
  for (const PullStatus& pull : model_pulls.list())
    source.pulls.push_back({pull.name, pull.bytes, pull.bytes_done});
  for (const std::shared_ptr<ollama::PullAnswer>& pull : pulls)
    if (!pull->done())
      source.pulls.push_back({pull->model(), pull->latest().bytes, pull->latest().bytes_done});
  return source;
}

void Api::Impl::dashboard(const ExchangePtr& exchange, const net::RouteParams&) {
  const bool events =
      exchange->request().header("accept").find("text/event-stream") != std::string_view::npos;
  if (!events) return exchange->respond_json(figures.figures(dashboard_source()));
  if (draining)
    return exchange->respond_error(Error{ErrorCode::kUnavailable, "The server is shutting down."});
  figures.listen(exchange, dashboard_source());
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
  count_with_model(exchange, [](const ServingContext& serving, const PrepareInput& in) {
    return llama::tokenize(serving, in);
  });
}

void Api::Impl::apply_template(const ExchangePtr& exchange, const net::RouteParams&) {
  respond_with_model(exchange,
                     [now = std::time(nullptr)](const ServedModel& model, const std::string& body) {
                       return llama::apply_template(model.serving, body, now);
                     });
}

void Api::Impl::detokenize_ids(const ExchangePtr& exchange, const net::RouteParams&) {
  respond_with_model(exchange, [](const ServedModel& model, const std::string& body) {
    return llama::detokenize(model.config, body, model.tokens_max());
  });
}

}  // namespace weir::api
