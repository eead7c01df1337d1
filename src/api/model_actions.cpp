// Which models there are: requests get theirs here, loaded first where it is not; lists of them,
// orders to load and to unload, and events of their states.
#include <chrono>
#include <utility>

#include "api/access/media_type.h"
#include "api/anthropic/message_error.h"
#include "api/anthropic/model_pages.h"
#include "api/api_impl.h"
#include "api/models/model_orders.h"
#include "api/ollama/error.h"
#include "api/ollama/names.h"
#include "api/pages/model_pages.h"
#include "api/serving/model_name.h"
#include "base/json.h"
#include "base/metrics.h"

namespace weir::api {

namespace {

// A request that asks for events and has waited so long for its model hears that it is alive;
// proxies give up on what says nothing for longer.
constexpr auto kSilentWait = std::chrono::seconds(10);
constexpr std::string_view kEvents = "text/event-stream; charset=utf-8";

bool autoload(const net::HttpRequest& request) {
  const std::string value = query_value(request.query, "autoload");
  return value != "false" && value != "0";
}

// The content type, which has the boundary, of a request whose body is a form.
std::optional<std::string> form_type(const net::HttpRequest& request) {
  if (!is_form(request)) return std::nullopt;
  return std::string(request.header("content-type"));
}

// The answer to an order, whenever it comes.
std::function<void(Result<void>)> success_of(const ExchangePtr& exchange) {
  exchange->responder().on_closed([weak = std::weak_ptr(exchange)] {
    if (const ExchangePtr left = weak.lock()) left->abandon();
  });
  return [exchange](const Result<void>& done) {
    if (exchange->responder().closed()) return;
    if (!done) return exchange->respond_error(done.error());
    exchange->respond_json("{\"success\":true}");
  };
}

}  // namespace

void Api::Impl::with_model(const ExchangePtr& exchange, WithModel then, bool events) {
  // What a request calls the only model is looked at with its other fields.
  if (registry.only_one()) {
    registry.lease({}, true, [&](Result<ModelLease> lease) {
      if (!lease) return exchange->respond_error(lease.error());
      take_model(exchange, *std::move(lease), then);
    });
    return;
  }
  struct Asked {
    AskedModel model;
    std::string body;
  };
  in_pool<Asked>(
      exchange,
      [ollama = ollama::is_ollama_path(exchange->request().path),
       form = form_type(exchange->request())](std::string& body) -> Result<Asked> {
        WEIR_ASSIGN(AskedModel model, form ? model_of_form(*form, body) : model_of_body(body));
        if (ollama) model.name = std::string(ollama::bare_name(model.name));
        return Asked{std::move(model), std::move(body)};
      },
      [this, exchange, events, then = std::move(then)](Result<Asked> asked) mutable {
        if (!asked) return exchange->respond_error(asked.error());
        exchange->put_body(std::move(asked->body));
        wait_for_model(exchange, model_of(asked->model.name), events && asked->model.stream,
                       std::move(then));
      });
}

void Api::Impl::wait_for_model(const ExchangePtr& exchange, const std::string& name, bool events,
                               WithModel then) {
  // A body that waits takes memory as one that is prepared does.
  auto memory = lease_body(exchange, exchange->request().body);
  if (!memory) return;
  const auto held = std::make_shared<MemoryLease>(std::move(*memory));
  const auto called = std::make_shared<bool>(false);
  const uint64_t waiter = registry.lease(
      name, autoload(exchange->request()),
      [this, exchange, held, called, then = std::move(then)](Result<ModelLease> lease) {
        *called = true;
        *held = {};
        const size_t before = waiting.size();
        std::erase_if(waiting, [&](const Waiting& w) { return w.exchange == exchange; });
        if (exchange->responder().closed()) return exchange->abandon();
        if (!lease) return exchange->respond_error(lease.error());
        if (waiting.size() < before) exchange->arrive_now();
        take_model(exchange, *std::move(lease), then);
      });
  if (*called) return;
  waiting.push_back({exchange, waiter, events, sched::Clock::now()});
  exchange->responder().on_closed([this, waiter, weak = std::weak_ptr(exchange)] {
    const ExchangePtr left = weak.lock();
    if (!left) return;
    registry.leave(waiter);
    std::erase_if(waiting, [&](const Waiting& w) { return w.waiter == waiter; });
    left->abandon();
  });
}

void Api::Impl::take_model(const ExchangePtr& exchange, ModelLease lease, const WithModel& then) {
  const size_t number = lease.model();
  const auto use = std::make_shared<const ModelUse>(ModelUse{std::move(lease), served[number]});
  exchange->hold(use);
  then(use);
}

// Once a second.
void Api::Impl::keep_waiting() {
  const sched::Clock::time_point now = sched::Clock::now();
  for (Waiting& one : waiting) {
    if (!one.events || now - one.told < kSilentWait || one.exchange->responder().closed()) continue;
    one.told = now;
    one.exchange->start_stream(kEvents);
    one.exchange->responder().write(": the model is being loaded\n\n");
  }
}

std::string Api::Impl::model_of(std::string_view name) const {
  if (!name.empty() && !registry.find(name))
    for (const std::shared_ptr<ServedModel>& model : served)
      if (model && model->config.adapters != nullptr && model->config.adapters->find(name))
        return model->config.model_id;
  return std::string(name);
}

Result<size_t> Api::Impl::find_model(std::string_view name) const {
  if (!registry.only_one()) return registry.find(model_of(name));
  WEIR_TRY(check_model(served[0]->config, name));
  return size_t{0};
}

std::shared_ptr<ServedModel> Api::Impl::first_loaded() const {
  for (const std::shared_ptr<ServedModel>& model : served)
    if (model) return model;
  return nullptr;
}

std::shared_ptr<ServedModel> Api::Impl::asked_model(const ExchangePtr& exchange) {
  if (registry.only_one()) return served[0];
  const std::string name = query_value(exchange->request().query, "model");
  if (name.empty()) {
    if (auto first = first_loaded()) return first;
    exchange->respond_error(
        Error{ErrorCode::kUnavailable, "No model is loaded.", {}, "model_not_loaded"});
    return nullptr;
  }
  const Result<size_t> found = find_model(name);
  if (found && served[*found]) return served[*found];
  exchange->respond_error(found ? Error{ErrorCode::kUnavailable,
                                        "The model '" + name + "' is not loaded.", "model",
                                        "model_not_loaded"}
                                : found.error());
  return nullptr;
}

pages::ModelLine Api::Impl::line_of(size_t number) const {
  const std::shared_ptr<ServedModel>& model = served[number];
  return {.status = registry.status(number),
          .config = model ? &model->config : nullptr,
          .tokens_max = model ? model->tokens_max() : 0};
}

void Api::Impl::models(const ExchangePtr& exchange, const net::RouteParams&) {
  if (query_value(exchange->request().query, "reload").empty()) return list_models(exchange);
  exchange->responder().on_closed([weak = std::weak_ptr(exchange)] {
    if (const ExchangePtr left = weak.lock()) left->abandon();
  });
  registry.reread([this, exchange](const Result<void>& reread) {
    if (exchange->responder().closed()) return;
    if (!reread) return exchange->respond_error(reread.error());
    list_models(exchange);
  });
}

void Api::Impl::list_models(const ExchangePtr& exchange) const {
  std::vector<pages::ModelLine> lines;
  for (const ModelStatus& status : registry.list()) lines.push_back(line_of(status.number));
  if (!anthropic::speaks_anthropic(exchange->request()))
    return exchange->respond_json(pages::models_page(lines, model_pulls.list()));
  std::vector<anthropic::ListedModel> listed;
  for (const pages::ModelLine& line : lines)
    listed.push_back({line.status.id, line.status.created});
  exchange->respond_json(anthropic::models_page(listed, exchange->request().query));
}

void Api::Impl::model(const ExchangePtr& exchange, const net::RouteParams& params) {
  const std::string& id = params["id"];
  const Result<size_t> number = find_model(id);
  if (!number) return exchange->respond_error(number.error());
  const pages::ModelLine line = line_of(*number);
  exchange->respond_json(anthropic::speaks_anthropic(exchange->request())
                             ? anthropic::model_page({id, line.status.created})
                             : pages::model_page(line, id));
}

// The answer does not wait for the pull: /models/sse tells how far it is.
void Api::Impl::pull_model(const ExchangePtr& exchange, const net::RouteParams&) {
  const Result<PullOrder> order = parse_pull(exchange->request().body);
  if (!order) return exchange->respond_error(order.error());
  success_of(exchange)(model_pulls.begin(order->name()));
}

void Api::Impl::heard_of_pull(const PullStatus& pull) {
  model_feed.tell(pages::pull_event(pull));
  if (pull.state == PullStatus::State::kFinished) registry.reread([](auto) {});
}

void Api::Impl::delete_model(const ExchangePtr& exchange, const net::RouteParams&) {
  const std::string name = query_value(exchange->request().query, "model");
  if (name.empty())
    return exchange->respond_error(
        Error{ErrorCode::kInvalid, "Expected ?model=, a model of the hub; found none.", "model"});
  model_store->remove(name, success_of(exchange));
}

void Api::Impl::load_model(const ExchangePtr& exchange, const net::RouteParams&) {
  const Result<LoadOrder> order = parse_load(exchange->request().body);
  if (!order) return exchange->respond_error(order.error());
  registry.load(order->model, order->options, success_of(exchange));
}

void Api::Impl::unload_model(const ExchangePtr& exchange, const net::RouteParams&) {
  const Result<UnloadOrder> order = parse_unload(exchange->request().body);
  if (!order) return exchange->respond_error(order.error());
  if (model_pulls.stop(order->model)) return success_of(exchange)({});
  registry.unload(order->model, order->force, success_of(exchange));
}

// All states first, then each change.
void Api::Impl::model_events(const ExchangePtr& exchange, const net::RouteParams&) {
  if (draining)
    return exchange->respond_error(Error{ErrorCode::kUnavailable, "The server is shutting down."});
  std::string states;
  for (const ModelStatus& status : registry.list())
    states += pages::model_event(ModelEvent::kStatus, status);
  for (const PullStatus& pull : model_pulls.list()) states += pages::pull_event(pull);
  model_feed.add(exchange, states);
}

void Api::Impl::render_models(std::string& out) const {
  const std::vector<ModelStatus> all = registry.list();
  const auto each = [&](std::string_view name, std::string_view help, auto value,
                        MetricType type = MetricType::kGauge) {
    bool first = true;
    for (const ModelStatus& model : all)
      render(out, name, std::exchange(first, false) ? help : "", type,
             static_cast<double>(value(model)), metric_label("model", model.id));
  };
  const auto engine = [&](auto figure) {
    return [this, figure](const ModelStatus& of) {
      const std::shared_ptr<ServedModel>& model = served[of.number];
      return model ? figure(model->config.engine->stats()) : 0.0;
    };
  };
  each("weir_model_loaded", "Whether a model is loaded.",
       [](const ModelStatus& of) { return of.state == ModelState::kLoaded ? 1 : 0; });
  each("weir_model_leases", "Requests that use a model.",
       [](const ModelStatus& of) { return of.leases; });
  each("weir_model_bytes", "Memory that is planned for a model.",
       [](const ModelStatus& of) { return of.bytes; });
  each("weir_model_running", "Sequences that run.",
       engine([](const sched::EngineStats& of) { return of.running.value(); }));
  each("weir_model_waiting", "Sequences that wait.",
       engine([](const sched::EngineStats& of) { return of.waiting.value(); }));
  each("weir_model_kv_usage", "Keys and values in use; 1 means full.",
       engine([](const sched::EngineStats& of) { return of.kv_usage.value(); }));
  each("weir_model_step_seconds_total", "Seconds of the team's time that a model's steps took.",
       engine([](const sched::EngineStats& of) { return of.step_time.sum(); }),
       MetricType::kCounter);
}

}  // namespace weir::api
