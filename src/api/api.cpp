#include "api/api.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "api/access/media_type.h"
#include "api/api_impl.h"
#include "api/exchange/api_error.h"
#include "api/ollama/error.h"
#include "api/stream/deadline.h"
#include "base/check.h"
#include "base/trace.h"

namespace weir::api {

namespace {

// How often silent streams, and requests whose client has left, are looked at.
constexpr uint64_t kTickMs = 1000;

// Of the pool, that read images at once: each takes the memory of a whole picture, and a processor
// for up to a second.
constexpr int32_t kMediaThreads = 2;

// One caller's requests get as many threads as there are processors for, and leave one at least to
// others; one of the pool's is for what is not preparation.
Preparation::Limits preparation_limits(const ApiConfig& config) {
  Preparation::Limits limits;
  limits.jobs_max = config.preparing_max;
  limits.threads = net::Loop::kPoolThreads - kMediaThreads - 1;
  limits.threads_of_one_max =
      std::clamp(static_cast<int32_t>(std::thread::hardware_concurrency()), 2, limits.threads - 1);
  return limits;
}

// Where processors are few, one thread leaves most of them to the engine.
Preparation::Limits reading_limits(const ApiConfig& config) {
  Preparation::Limits limits;
  limits.jobs_max = config.preparing_max;
  limits.threads = std::clamp(static_cast<int32_t>(std::thread::hardware_concurrency()) / 4, 1,
                              kMediaThreads);
  limits.threads_of_one_max = limits.threads;
  limits.background_threads = 0;
  return limits;
}

Preparation::Lane pool_of(net::Loop& loop) {
  return [&loop](std::function<void()> work, std::function<void()> done) {
    return loop.run_in_pool(std::move(work), std::move(done));
  };
}

// What `work` holds belongs to the loop: the thread lets go of it before the loop hears of its end.
Preparation::Lane lane_of(BackgroundThread& thread, net::Loop& loop) {
  return [&thread, &loop](std::function<void()> work, std::function<void()> done) {
    thread.run([&loop, work = std::move(work), done = std::move(done)]() mutable {
      work();
      work = {};
      loop.post(std::move(done));
    });
    return true;
  };
}

// Of the one model that there is.
KnownModel entry_of(const ApiConfig& config) {
  return {.id = config.model_id,
          .aliases = config.aliases,
          .any_name = config.any_name,
          .pinned = true,
          .created = config.created};
}

Error shutting_down() { return {ErrorCode::kUnavailable, "The server is shutting down."}; }

}  // namespace

Api::Impl::Impl(ApiConfig config_in, std::optional<ModelSet> set)
    : config(std::move(config_in)),
      policy{CorsPolicy(config.cors_origins), config.retry_after_s, &refusals},
      entrance(config.entrance, policy.cors),
      budget(config.log_bytes_max),
      body_budget(config.preparing_bytes_max),
      media_budget(config.media_limits.bytes_max),
      response_store(config.responses_bytes_max),
      keys(config.api_keys),
      registry(set ? std::move(set->models) : std::vector{entry_of(config)},
               set ? set->limits : ModelRegistry::Limits(), set ? set->host : nullptr,
               {.on_loaded =
                    [this](size_t model, const std::shared_ptr<HostedModel>& hosted) {
                      ApiConfig of_model = hosted->config;
                      of_model.media = config.media;
                      served[model] = std::make_shared<ServedModel>(std::move(of_model), stats);
                    },
                .on_added = [this] { served.resize(registry.count()); },
                .on_unloading =
                    [this](size_t model) {
                      if (!served[model]->empty()) return false;
                      served[model].reset();
                      return true;
                    },
                .on_freed = [this] { config.loop->wake(); }}),
      model_pulls(config.hub, [this](const PullStatus& pull) { heard_of_pull(pull); }),
      model_feed(config.stream_pause_bytes),
      preparation(preparation_limits(config), pool_of(*config.loop),
                  lane_of(background, *config.loop), stats.preparing),
      media_reading(reading_limits(config), pool_of(*config.loop), pool_of(*config.loop),
                      stats.reading_media) {
  CHECK(config.loop);
  preparing_host.stats = &stats;
  preparing_host.queue_timeout = std::chrono::duration<double>(config.queue_timeout_s);
  preparing_host.request_timeout = std::chrono::duration<double>(config.request_timeout_s);
  served.resize(registry.count());
  registry.listen([this](ModelEvent event, const ModelStatus& status) {
    model_feed.tell(pages::model_event(event, status));
  });
  if (!set) {
    CHECK(config.tokenizer && config.engine);
    served[0] = std::make_shared<ServedModel>(config, stats);
    registry.set_loaded(config.facts.bytes, config.context_max);
    model_store = std::make_unique<OnlyModel>(
        served[0]->serving, [model = served[0].get()] { return model->tokens_max(); });
  } else {
    model_store = std::make_unique<ServedStore>(config, registry, served);
  }
  add_routes();
  config.loop->on_wake([this] { poll_streams(); });
  config.loop->every(kTickMs, [this] { tick(); });
}

ExchangePtr Api::Impl::open(net::HttpRequest&& request, net::HttpResponderPtr responder) {
  return std::make_shared<Exchange>(policy, stats, std::move(request), std::move(responder));
}

void Api::Impl::handle(net::HttpRequest&& request, net::HttpResponderPtr responder) {
  if (auto headers = policy.cors.preflight(request))
    return open(std::move(request), std::move(responder))
        ->respond(204, {}, {}, std::move(*headers));
  routes.dispatch(std::move(request), std::move(responder),
                  [this](int status, const std::string& allow, net::HttpRequest&& missed,
                         net::HttpResponderPtr missed_responder) {
                    refuse(status, allow, open(std::move(missed), std::move(missed_responder)));
                  });
}

void Api::Impl::refuse(int status, const std::string& allow, const ExchangePtr& exchange) {
  const std::string what =
      exchange->request().method + " " + exchange->request().path.substr(0, 256);
  if (status == 404)
    return exchange->respond_error(error_of_status(404, "Unknown request URL: " + what + "."));
  if (status == 405)
    return exchange->respond_error(
        error_of_status(405, "Not allowed: " + what + "; expected " + allow + "."),
        {{"Allow", allow}});
  exchange->respond_error(
      error_of_status(status, "Invalid percent-encoding in the path of " + what + "."));
}

// Checks what all endpoints ask of a request; answers it if it fails.
bool Api::Impl::admit(Exchange& exchange, const EndpointDoc& endpoint) const {
  const net::HttpRequest& request = exchange.request();
  const Access access = endpoint.access;
  const std::shared_ptr<Key> key = access == Access::kOpen ? nullptr : keys.find(request);
  if (key) exchange.set_key(key);
  if (auto refusal = entrance.refusal(request, access, key.get(), !keys.empty())) {
    exchange.respond_error(refusal->error, std::move(refusal->headers));
    return false;
  }
  const bool may_have_body = request.method == "POST" || endpoint.fields != nullptr;
  // What only looks is not counted: a limit must not blind the monitor that watches it.
  if (key && request.method == "POST") {
    if (const auto refusal = key->begin(sched::Clock::now())) {
      exchange.respond_refusal(*refusal);
      return false;
    }
    exchange.hold(KeyUse(key));
  }
  if (may_have_body && request.without_body) {
    exchange.respond_error(Error{ErrorCode::kUnavailable,
                                 "The server has become ready for this request while its body "
                                 "came, which was not kept; send it again."});
    return false;
  }
  if (endpoint.form) {
    if (may_have_body && is_form(request)) return true;
    exchange.respond_error(wrong_form_type(request));
    return false;
  }
  // Ollama's own documentation has its users send bodies with `curl -d`.
  const bool is_readable =
      is_json(request) || (ollama::is_ollama_path(request.path) && is_curls_default(request));
  if (may_have_body && !request.body.empty() && !is_readable) {
    exchange.respond_error(wrong_media_type(request));
    return false;
  }
  return true;
}

// No memory is taken for a request that its path, method, key or head refuses: handle() says why.
bool Api::Impl::wants_body(const net::HttpRequest& request) const {
  if (request.method != "POST" && request.method != "DELETE") return false;
  const net::Routes::Match found = routes.match(request.method, request.path);
  if (found.status != 200) return false;
  const EndpointDoc& endpoint = routed[found.number]->doc;
  if (request.method != "POST" && endpoint.fields == nullptr) return false;
  return !entrance.refusal(request, endpoint.access, keys.find(request).get(), !keys.empty());
}

// The memory that the body needs while it is prepared; none: the exchange has been answered.
std::optional<MemoryLease> Api::Impl::lease_body(const ExchangePtr& exchange,
                                                 const std::string& body) {
  const size_t bytes = is_form(exchange->request()) ? form_bytes(body) : preparing_bytes(body);
  if (bytes > body_budget.most_of_one()) {
    exchange->respond_error(
        Error{ErrorCode::kTooLarge, "The body needs " + std::to_string(bytes) +
                                        " bytes of memory to be parsed, more than this server "
                                        "gives to one request: expected fewer or longer values."});
    return std::nullopt;
  }
  auto lease = body_budget.take(exchange->caller(), bytes);
  if (!lease)
    exchange->respond_error(
        Error{ErrorCode::kOverloaded, "Too many requests are being prepared; try again later."});
  return lease;
}

// Hands the job over until it is done, or the client leaves.
void Api::Impl::hand_over(Preparation& to, const ExchangePtr& exchange, Preparation::Job job) {
  if (exchange->responder().closed()) return exchange->abandon();
  job.caller = exchange->caller();
  job.arrived = exchange->arrived();
  job.refuse = [exchange](const Expiry& refusal) {
    exchange->respond_error(refusal.error, refusal.headers);
  };
  const uint64_t id = to.add(std::move(job));
  exchange->responder().on_closed([&to, id, weak = std::weak_ptr(exchange)] {
    to.leave(id);
    if (const auto left = weak.lock()) left->abandon();
  });
}

void Api::Impl::poll_streams() {
  const trace::Scope scope(trace::Kind::kNetwork, "events");
  const sched::Clock::time_point now = sched::Clock::now();
  for (const std::shared_ptr<ServedModel>& model : served) {
    if (!model) continue;
    const std::vector<std::shared_ptr<Stream>>& streams = model->streams;
    for (size_t i = 0; i < streams.size(); ++i) {
      for (size_t step = 0; step < Stream::kPrefetchSteps; ++step)
        if (const size_t ahead = i + Stream::kPrefetchSteps - step; ahead < streams.size())
          streams[ahead]->prefetch(step);
      streams[i]->poll(now);
    }
    for (const std::shared_ptr<BatchAnswer>& batch : model->batches) batch->poll();
    begin_entries(*model);
  }
  reap();
}

void Api::Impl::tick() {
  poll_streams();
  refusals.tick();
  const sched::Clock::time_point now = sched::Clock::now();
  double oldest_s = 0;
  for (const std::shared_ptr<ServedModel>& model : served)
    if (model) tick_model(*model, now, oldest_s);
  for (Preparation* each : {&preparation, &media_reading})
    each->expire([&](sched::Clock::time_point arrived) {
      const double age_s = std::chrono::duration<double>(now - arrived).count();
      oldest_s = std::max(oldest_s, age_s);
      return check_deadlines(preparing_host, age_s, age_s);
    });
  stats.oldest_waiting.set(oldest_s);
  figures.tick(dashboard_source());
  keep_waiting();
  model_feed.keep_alive(now);
  for (const std::shared_ptr<ollama::PullAnswer>& pull : pulls)
    pull->keep_alive(now, std::chrono::milliseconds(config.keep_alive_ms));
  drop_changed_models();
  registry.tick();
  reap();
}

// A model whose files were changed goes, and is read again for the next request.
void Api::Impl::drop_changed_models() {
  if (registry.only_one()) return;
  for (size_t i = 0; i < served.size(); ++i)
    if (served[i] && served[i]->config.engine->given_up() != nullptr)
      registry.unload(served[i]->config.model_id, /*force=*/true, [](auto) {});
}

void Api::Impl::tick_model(ServedModel& model, sched::Clock::time_point now, double& oldest_s) {
  for (const std::shared_ptr<Stream>& stream : model.streams) {
    stream->expire(now);
    stream->keep_alive(now);
    oldest_s = std::max(oldest_s, stream->waiting_seconds(now));
  }
  for (const std::shared_ptr<BatchAnswer>& batch : model.batches) {
    batch->expire(now);
    batch->keep_alive(now);
    oldest_s = std::max(oldest_s, batch->waiting_seconds(now));
  }
  expire_entries(model, now);
}

void Api::Impl::reap() {
  for (const std::shared_ptr<ServedModel>& model : served)
    if (model) model->reap();
  std::erase_if(pulls,
                [](const std::shared_ptr<ollama::PullAnswer>& pull) { return pull->done(); });
  show_open_answers();
  registry.poll();
}

void Api::Impl::show_open_answers() {
  size_t open = 0;
  for (const std::shared_ptr<ServedModel>& model : served)
    if (model) open += model->streams.size() + model->batches.size();
  stats.open_answers.set(static_cast<double>(open));
}

Api::Api(ApiConfig config) : impl_(std::make_unique<Impl>(std::move(config), std::nullopt)) {}

Api::Api(ApiConfig config, ModelSet set)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(set))) {}

Api::~Api() = default;

void Api::handle(net::HttpRequest&& request, net::HttpResponderPtr responder) {
  impl_->handle(std::move(request), std::move(responder));
}

std::pair<std::string, std::string> Api::error_body(int status, std::string_view message,
                                                    const net::HttpRequest& request) {
  return Exchange::error_body(status, message, request);
}

net::HttpResponder::Headers Api::error_headers(int status, const net::HttpRequest& request) const {
  return Exchange::common_headers(impl_->policy, request, status);
}

bool Api::wants_body(const net::HttpRequest& request) const { return impl_->wants_body(request); }

void Api::set_keys(std::vector<KeySpec> keys) {
  impl_->keys.replace(std::move(keys), sched::Clock::now());
}

void Api::set_more_metrics(std::function<void(std::string&)> render) {
  impl_->more_metrics = std::move(render);
}

void Api::set_http_stats(const net::HttpStats* stats) { impl_->http_stats = stats; }

void Api::begin_drain() {
  impl_->draining = true;
  impl_->refusals.end();
  impl_->figures.end();
  impl_->model_feed.end();
}

void Api::start() { impl_->registry.start(); }

void Api::shed_models() { impl_->registry.shed(); }

void Api::cancel_all() {
  impl_->preparation.end(shutting_down());
  impl_->media_reading.end(shutting_down());
  impl_->end_fetches(shutting_down());
  impl_->registry.end(shutting_down());
  impl_->model_pulls.stop_all();
  for (const std::shared_ptr<ollama::PullAnswer>& pull : impl_->pulls) pull->fail(shutting_down());
  for (const std::shared_ptr<ServedModel>& model : impl_->served) {
    if (!model) continue;
    for (const std::shared_ptr<Stream>& stream : model->streams) stream->fail(shutting_down());
    for (const std::shared_ptr<BatchAnswer>& batch : model->batches) batch->fail(shutting_down());
    Impl::refuse_entries(*model, shutting_down());
  }
  impl_->reap();
}

void Api::in_background(std::function<void()> call) { impl_->background.run(std::move(call)); }

int32_t Api::open() const {
  int32_t open = 0;
  for (const std::shared_ptr<ServedModel>& model : impl_->served)
    if (model) open += model->config.engine->open();
  return open;
}

bool Api::idle() const {
  impl_->reap();
  const auto ending = [](const auto& answer) { return answer->ending(); };
  return impl_->preparation.count() == 0 && impl_->media_reading.count() == 0 &&
         impl_->fetches.empty() && impl_->waiting.empty() && impl_->pulls.empty() &&
         std::ranges::all_of(impl_->served, [&](const std::shared_ptr<ServedModel>& model) {
           return !model || (model->entries.empty() && model->host.retired.empty() &&
                             std::ranges::all_of(model->batches, ending) &&
                             std::ranges::all_of(model->streams, ending));
         });
}

}  // namespace weir::api
