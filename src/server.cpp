#include "server.h"

#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "api/access/guard.h"
#include "api/api.h"
#include "api/exchange/loading.h"
#include "api/pages/ui.h"
#include "base/byte_size.h"
#include "base/log.h"
#include "base/thread_team.h"
#include "commands/pull_report.h"
#include "exec/executor.h"
#include "fit/search_desk.h"
#include "host/local_host.h"
#include "net/file_limit.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/service_manager.h"
#include "net/tls.h"
#include "program/adapters.h"
#include "program/allocator.h"
#include "program/api_config.h"
#include "program/expert_watch.h"
#include "program/key_file.h"
#include "program/loaded_model.h"
#include "program/memory_plan.h"
#include "program/model_choice.h"
#include "program/model_presets.h"
#include "program/model_source.h"
#include "program/network_memory.h"
#include "program/pressure_watch.h"
#include "program/media_fetcher.h"
#include "program/pull_desk.h"
#include "program/service_report.h"
#include "program/start_report.h"
#include "program/text_parts.h"
#include "program/weight_watch.h"
#include "sched/engine.h"
#include "sched/stage.h"
#include "text/vocabulary_check.h"

namespace weir {

namespace {

using std::chrono::steady_clock;

// Messages in flight to the engine beyond one submission and one cancellation per queued request.
constexpr size_t kInboxSlack = 64;

// How often a drain looks whether it has lasted long enough.
constexpr uint64_t kDrainTickMs = 50;
// After a drain's time: how long clients may take to read how their answers ended. With the default
// of --drain-seconds it ends before Kubernetes kills, 30 s after SIGTERM.
constexpr auto kLastWordsTime = std::chrono::seconds(3);

// What the service manager allows beyond, until the process has ended: memory of gigabytes goes
// back.
constexpr auto kEndTime = std::chrono::seconds(10);

// Weights that are used from their files: how often these are looked at.
constexpr uint64_t kWeightLookMs = 1000;
// The kernel computes its averages of waiting for memory so often.
constexpr uint64_t kPressureMs = 2000;

class Server {
 public:
  // `to_pull`: a model of the hub that is fetched first, while the server says how far it is; then
  // `options.model` names it, and nothing otherwise. `manager`: of the service, where this is one.
  Server(const Options& options, std::vector<api::KeySpec> keys, const ServeHooks& hooks,
         std::optional<hub::ModelName> to_pull, net::ServiceManager manager)
      : options_(options),
        keys_(std::move(keys)),
        hooks_(hooks),
        service_(std::move(manager)),
        to_pull_(std::move(to_pull)),
        handle_(options.queue, std::bit_ceil(2 * static_cast<size_t>(options.queue) + kInboxSlack),
                stage_.bell()),
        limit_(memory_limit(options)),
        loading_(split_list(options.cors)),
        guard_({.allowed_hosts = split_list(options.allowed_hosts),
                .own_names = api::own_names(options.host),
                .tls = !options.tls_cert.empty()},
               api::CorsPolicy(split_list(options.cors))) {}

  // Before run(), unless the model is to be pulled, or models come and go.
  Result<void> choose();
  // Before run(): models that come and go, instead of one.
  void serve_several(host::LocalHost::PresetSource source, std::vector<ModelPreset> presets) {
    preset_source_ = std::move(source);
    presets_ = std::move(presets);
  }
  Result<void> run();

 private:
  // Network.
  Result<void> listen();
  Result<void> listen_tcp();
  void log_certificate() const;
  void warn_of_exposure() const;
  void reread();
  void reread_keys();
  void answer(net::HttpRequest&& request, net::HttpResponderPtr responder);
  void refuse(const net::HttpRequest& request, const std::string& why,
              net::HttpResponder& responder) const;
  net::HttpResponder::Headers error_headers(int status, const net::HttpRequest& request) const;
  void on_signal();
  void stop_listening();
  void hurry_drain();
  void finish_when_idle();

  void set_stage(const std::string& stage);

  // Engine thread.
  void engine_main();
  Result<void> pull();
  Result<void> compute();
  Result<void> load(ThreadTeam& team);
  void become_ready(TextParts text);
  void begin_several(ThreadTeam& team);
  void become_ready_for_several();
  void announce_ready(const std::string& what, Use use);
  api::ModelSet model_set();
  void complete(api::ApiConfig& config);
  void watch();
  void release_freed();

  Options options_;
  std::vector<api::KeySpec> keys_;
  const ServeHooks& hooks_;
  ServiceReport service_;
  const std::optional<hub::ModelName> to_pull_;
  // Of models that come and go; else empty.
  host::LocalHost::PresetSource preset_source_;
  std::vector<ModelPreset> presets_;
  ModelChoice choice_;  // Made before the model is loaded, and the same from then on.
  sched::Stage stage_;
  sched::EngineHandle handle_;  // Of the only model's engine.
  const MemoryLimit limit_;
  api::LoadingAnswers loading_;
  const api::Guard guard_;  // Of both.
  const steady_clock::time_point start_ = steady_clock::now();

  net::Loop loop_;
  std::unique_ptr<net::HttpServer> http_;
  std::shared_ptr<net::TlsContext> tls_;
  std::unique_ptr<TextParts> text_;
  std::unique_ptr<host::LocalHost> host_;  // Of models that come and go.
  std::unique_ptr<api::Api> api_;          // Set on the loop's thread when the model is loaded.
  std::unique_ptr<fit::SearchDesk> search_desk_;  // From the first search on.
  std::unique_ptr<PullDesk> pull_desk_;           // From when the model is loaded.
  std::unique_ptr<MediaFetcher> media_fetcher_;   // The same; null without --allow-remote-media.
  bool draining_ = false;                         // /ready says 503.
  bool listening_ = true;                         // Until --drain-delay has passed, too.
  bool cancelled_ = false;                        // The drain's time is over.
  bool finishing_ = false;
  bool stopped_ = false;
  steady_clock::time_point drain_begin_;  // After --drain-delay.

  std::unique_ptr<api::Adapters> adapters_;  // Null: the model takes none.
  std::unique_ptr<model::Model> model_;
  MediaTowers towers_;
  std::unique_ptr<exec::Executor> executor_;
  std::atomic<int32_t> open_caches_{0};
  std::unique_ptr<kv::disk::DiskCache> disk_cache_;  // Null: there is none.
  DraftSources drafts_;
  std::unique_ptr<sched::Engine> engine_;
  MemoryPlan plan_;
  std::optional<Error> failure_;
};

Result<void> Server::listen() {
  http_ = std::make_unique<net::HttpServer>(
      loop_, http_limits(options_, limit_),
      [this](net::HttpRequest&& request, net::HttpResponderPtr responder) {
        answer(std::move(request), std::move(responder));
      },
      &api::Api::error_body);
  http_->wants_body([this](const net::HttpRequest& request) {
    return api_ && !guard_.refusal(request, !keys_.empty()) && api_->wants_body(request);
  });
  http_->error_headers([this](int status, const net::HttpRequest& request) {
    return error_headers(status, request);
  });
  if (!options_.tls_cert.empty()) {
    WEIR_ASSIGN(tls_, net::TlsContext::load(options_.tls_cert, options_.tls_key));
    http_->use_tls(tls_);
    log_certificate();
  }
  WEIR_TRY(listen_tcp());
  if (!options_.unix_socket.empty()) WEIR_TRY(http_->listen_unix(options_.unix_socket));
  warn_of_exposure();
  return {};
}

// Where the service manager listens already, it decides on what, and connections wait there until
// they can be answered.
Result<void> Server::listen_tcp() {
  const std::span<const int> passed = service_.manager().sockets();
  if (passed.empty()) return http_->listen_tcp(options_.host, static_cast<uint16_t>(options_.port));
  for (const int fd : passed) WEIR_TRY(http_->listen_passed(fd));
  options_.host = http_->address();
  log::info("server takes sockets=" + std::to_string(passed.size()) +
            " of the service manager in the place of --host and --port");
  return {};
}

void Server::warn_of_exposure() const {
  if (http_->is_public() && keys_.empty())
    log::warn("server listens on " + options_.host +
              " without keys: every client that reaches this machine may use it" +
              (options_.manage == api::Manage::kOn ? " and manage it (--manage on)" : "") +
              " (--api-key-file asks for keys, --host 127.0.0.1 keeps it to this machine)");
  for (const auto& [option, file] :
       {std::pair{"--api-key-file", &options_.api_key_file}, {"--tls-key", &options_.tls_key}})
    if (const std::string text = exposure(option, *file); !text.empty())
      log::warn("server " + text);
}

// SIGHUP. What cannot be read leaves all as it was; nothing here ends the server.
void Server::reread() {
  if (const Result<void> reopened = log::reopen(); !reopened)
    log::error("log file kept: " + reopened.error().message);
  log::info("server rereads its files (SIGHUP)");
  service_.reloading();
  if (!options_.api_key_file.empty()) reread_keys();
  if (tls_) {
    if (const Result<void> reloaded = tls_->reload(); !reloaded)
      log::error("tls certificate kept: " + reloaded.error().message);
    else
      log_certificate();
  }
  warn_of_exposure();
  service_.reloaded();
}

void Server::reread_keys() {
  Result<std::vector<api::KeySpec>> keys = load_keys(options_);
  if (!keys) return log::error("keys kept: " + keys.error().message);
  keys_ = std::move(*keys);  // While the model is loading they wait here.
  if (api_) api_->set_keys(keys_);
  log::info("keys count=" + std::to_string(keys_.size()));
}

void Server::log_certificate() const {
  log::info("tls certificate " + tls_->description());
  if (tls_->expired()) log::warn("tls certificate is expired, or not valid yet");
}

void Server::answer(net::HttpRequest&& request, net::HttpResponderPtr responder) {
  if (const auto refusal = guard_.refusal(request, !keys_.empty()))
    return refuse(request, *refusal, *responder);
  if (api_) return api_->handle(std::move(request), std::move(responder));
  if (options_.ui)
    if (const auto page = api::pages::ui_answer(request)) {
      net::HttpResponder::Headers headers = page->headers;
      if (!page->type.empty()) headers.emplace_back("Content-Type", page->type);
      return responder->respond(page->status, headers, page->body);
    }
  loading_.answer(request, *responder);
}

void Server::refuse(const net::HttpRequest& request, const std::string& why,
                    net::HttpResponder& responder) const {
  constexpr int kForbidden = 403;
  auto [type, body] = api::Api::error_body(kForbidden, why, request);
  net::HttpResponder::Headers headers = error_headers(kForbidden, request);
  headers.emplace_back("Content-Type", std::move(type));
  responder.respond(kForbidden, headers, body);
}

net::HttpResponder::Headers Server::error_headers(int status,
                                                  const net::HttpRequest& request) const {
  return api_ ? api_->error_headers(status, request) : loading_.error_headers(status, request);
}

void Server::on_signal() {
  if (draining_ || !api_) {
    log::warn("server stops at once");
    if (!options_.unix_socket.empty()) ::unlink(options_.unix_socket.c_str());
    log::flush(std::chrono::milliseconds(100));
    std::_Exit(draining_ ? 1 : 0);
  }
  draining_ = true;
  drain_begin_ = steady_clock::now() + std::chrono::seconds(options_.drain_delay);
  api_->begin_drain();
  service_.stopping(api_->open(), std::chrono::seconds(options_.drain_delay) +
                                      std::chrono::seconds(options_.drain_seconds) +
                                      kLastWordsTime + kEndTime);
  if (options_.drain_delay == 0)
    stop_listening();
  else
    log::info("server is not ready any more, and serves on for " +
              std::to_string(options_.drain_delay) + " s (a second signal stops at once)");
  loop_.every(kDrainTickMs, [this] { hurry_drain(); });
}

void Server::stop_listening() {
  listening_ = false;
  log::info("server drains open=" + std::to_string(api_->open()) + " (open answers have " +
            std::to_string(options_.drain_seconds) +
            " s to finish; a second signal stops at once)");
  http_->drain([this] { finish_when_idle(); });
}

// A client that does not read, or sends no end of its request, must not hold the server for ever.
void Server::hurry_drain() {
  if (steady_clock::now() < drain_begin_) return;
  if (listening_) stop_listening();
  const auto late =
      steady_clock::now() - drain_begin_ - std::chrono::seconds(options_.drain_seconds);
  if (late < steady_clock::duration::zero() || finishing_) return;
  if (!cancelled_) {
    cancelled_ = true;
    log::warn("server cancels what is still open=" + std::to_string(api_->open()));
    // Before: nothing may be submitted after the last cancellation.
    host_ ? host_->drain() : handle_.drain();
    api_->cancel_all();
    http_->close_unfinished_requests();
  }
  if (late > kLastWordsTime) finish_when_idle();
}

// The last connection is gone, or need not be waited for; requests whose clients left early may
// still be ending.
void Server::finish_when_idle() {
  if (finishing_) return;
  finishing_ = true;
  loop_.every(5, [this] {
    if (stopped_ || !api_->idle()) return;
    stopped_ = true;     // From here on the engines are their thread's alone.
    api_->cancel_all();  // Models that are being loaded are wanted no more.
    stage_.stop();
    loop_.stop();
  });
}

void Server::engine_main() {
  pthread_setname_np(pthread_self(), "weir-engine");
  Result<void> served = to_pull_ ? pull() : Result<void>();
  if (served) served = compute();
  if (served) return;
  failure_ = served.error();
  loop_.stop();
}

void Server::set_stage(const std::string& stage) {
  loading_.set_stage(stage);
  service_.stage(stage);
}

// The model into the cache; /health says how far it is.
Result<void> Server::pull() {
  PullReport report(::isatty(STDOUT_FILENO) == 1 ? PullReport::Form::kBar : PullReport::Form::kLog);
  PullWatch watch = report.watch();
  const auto tell = [this](int64_t percent) {
    loop_.post([this, stage = "pull " + std::to_string(percent) + " %"] { set_stage(stage); });
  };
  tell(0);
  watch.on_progress = [tell, last = int64_t{0},
                       on_progress = watch.on_progress](const hub::Progress& now) mutable {
    if (const int64_t percent = percent_of(now); percent != last) tell(last = percent);
    on_progress(now);
  };
  WEIR_ASSIGN(const hub::Snapshot snapshot, pull_model(options_, *to_pull_, watch));
  loop_.post([this] { set_stage(""); });
  options_.model = snapshot.model_path;
  return choose();
}

Result<void> Server::choose() {
  WEIR_ASSIGN(choice_, choose_model(options_));
  return {};
}

// Until the server ends; an error means that it could not begin.
Result<void> Server::compute() {
  ThreadTeam team(presets_.empty()       ? choice_.threads
                  : options_.threads > 0 ? options_.threads
                                         : ThreadTeam::usable_cores());
  if (presets_.empty())
    WEIR_TRY(load(team));
  else
    begin_several(team);
  if (trace::Recorder* recorder = hooks_.recorder)
    team.run([&](int member) {
      recorder->attach(member == 0 ? "engine" : "team " + std::to_string(member));
    });
  stage_.run();
  if (host_) host_->close();
  if (engine_) engine_->finish();
  engine_.reset();    // On the thread that owns what it holds.
  disk_cache_.reset();
  executor_.reset();  // Before the team that it runs on.
  return {};
}

Result<void> Server::load(ThreadTeam& team) {
  Result<TextParts> text = fail(ErrorCode::kConfig, "not loaded");
  std::thread text_thread([&] { text = load_text(choice_.model_card, options_); });

  Result<LoadedModel> loaded = load_model(options_, choice_, limit_, team, open_caches_);
  text_thread.join();
  if (!loaded) return tl::unexpected(loaded.error());
  if (!text) return tl::unexpected(text.error());
  WEIR_ASSIGN(const std::string lacking,
              text::check_vocabulary(*text->tokenizer, loaded->model->spec().vocab_size));
  if (!lacking.empty()) log::warn("model " + lacking);
  plan_ = std::move(loaded->plan);
  model_ = std::move(loaded->model);
  towers_ = std::move(loaded->towers);
  executor_ = std::move(loaded->executor);
  drafts_ = std::move(loaded->drafts);
  disk_cache_ = std::move(loaded->disk_cache);
  WEIR_ASSIGN(adapters_, load_adapters(options_, *model_, plan_));

  sched::EngineOptions engine_options = plan_engine(options_, plan_, drafts_, *model_);
  engine_options.disk = disk_cache_.get();
  engine_options.on_rest = [this, &team] {
    team.run([](int) { purge_allocator(); });
    loop_.post([this] { release_freed(); });
  };
  if (ssd::ExpertStore* experts = model_->experts())
    engine_options.on_idle = [experts] { experts->adjust_memory(); };
  engine_ = std::make_unique<sched::Engine>(engine_options, *executor_, handle_,
                                            [this] { loop_.wake(); });
  stage_.add(*engine_);
  loop_.post([this, parts = std::make_shared<TextParts>(std::move(*text))] {
    become_ready(std::move(*parts));
  });
  return {};
}

void Server::become_ready(TextParts text) {
  text_ = std::make_unique<TextParts>(std::move(text));
  text_->take_media(choice_.model_card, towers_);
  text_->hear_speech(choice_.model_card);
  api::ApiConfig config = api_config(options_, choice_, *model_, plan_, *text_);
  config.adapters = adapters_.get();
  config.engine = &handle_;
  const std::string name = config.model_id;
  complete(config);
  api_ = std::make_unique<api::Api>(std::move(config));
  api_->set_http_stats(&http_->stats());
  watch();
  log_start(options_, choice_, *model_, plan_, *text_);
  announce_ready(name, use_of(*text_));
}

// Requests are answered: `what` serves them, for people.
void Server::announce_ready(const std::string& what, Use use) {
  http_->accept_passed();
  if (hooks_.on_ready)
    return hooks_.on_ready(http_->port(), [this] { loop_.post([this] { on_signal(); }); });
  announce(options_, http_->port(), steady_clock::now() - start_, use, !keys_.empty());
  service_.ready("Serving " + what, loop_, stage_);
}

// What is not of a model.
void Server::complete(api::ApiConfig& config) {
  config.loop = &loop_;
  config.api_keys = keys_;
  config.entrance.is_public = http_->is_public();
  config.search_models = [this](api::ModelSearch search, fit::SearchDesk::Done done) {
    hub::SearchQuery query;
    query.text = std::move(search.words);
    query.filter = std::move(search.filter);
    query.sort = std::move(search.sort);
    query.cursor = std::move(search.cursor);
    if (!search_desk_)
      search_desk_ = std::make_unique<fit::SearchDesk>(
          options_, limit_, [this](std::function<void()> call) { loop_.post(std::move(call)); });
    search_desk_->ask(std::move(query), std::move(done));
  };
  pull_desk_ = std::make_unique<PullDesk>(
      options_,
      [this] { return host_ ? host_->paths() : std::vector{choice_.model_card.files.path()}; },
      [this](std::function<void()> call) { loop_.post(std::move(call)); });
  config.hub = pull_desk_.get();
  if (options_.allow_remote_media.empty()) return;
  Result<MediaHosts> hosts = MediaHosts::parse(split_list(options_.allow_remote_media));
  CHECK(hosts);  // check_options() has read it.
  media_fetcher_ = std::make_unique<MediaFetcher>(
      *std::move(hosts), [this](std::function<void()> call) { loop_.post(std::move(call)); });
  config.media = media_fetcher_.get();
}

// On the engine's thread.
void Server::begin_several(ThreadTeam& team) {
  host_ = std::make_unique<host::LocalHost>(
      host::HostParts{.loop = loop_, .stage = stage_, .team = team}, options_, preset_source_,
      presets_, limit_);
  loop_.post([this] { become_ready_for_several(); });
}

void Server::become_ready_for_several() {
  api::ApiConfig config = process_config(options_, host_->plan());
  complete(config);
  api_ = std::make_unique<api::Api>(std::move(config), model_set());
  api_->set_http_stats(&http_->stats());
  loop_.every(kWeightLookMs, [this] {
    if (!stopped_) host_->look_at_files();
  });
  loop_.every(kPressureMs, [this] {
    if (!stopped_) host_->look_at_memory([this] { api_->shed_models(); });
  });
  log::info("models count=" + std::to_string(presets_.size()) +
            " room=" + human_bytes(host_->room()) + " (" + limit_.from + ")");
  api_->start();
  announce_ready(std::to_string(presets_.size()) + " models", Use::kChats);
}

api::ModelSet Server::model_set() {
  api::ModelSet set;
  set.models = host_->models();
  set.limits.autoload = options_.autoload;
  set.limits.load_timeout_s = options_.load_timeout;
  set.limits.stay_s = options_.load_stay;
  set.host = host_.get();
  return set;
}

// Whatever is looked at now and then while requests are served.
void Server::watch() {
  if (model_->experts() != nullptr) watch_experts(loop_, *api_, *model_);
  if (!model_->files().in_place.empty())
    loop_.every(kWeightLookMs, [watch = WeightWatch(model_->files().in_place, handle_)]() mutable {
      watch.look();
    });
  loop_.every(kPressureMs, [this, watch = PressureWatch()]() mutable {
    if (!stopped_) watch.look(*engine_, model_->experts());
  });
}

// On the network loop, when nothing has been computed for a while.
void Server::release_freed() {
  purge_allocator();
  // Each of these may have freed what requests took while they were prepared.
  for (int i = 0; i < net::Loop::kPoolThreads; ++i) loop_.run_in_pool(purge_allocator, [] {});
  if (api_) api_->in_background(purge_allocator);
}

Result<void> Server::run() {
  WEIR_TRY(listen());
  service_.loading(loop_);
  loop_.on_signal(SIGTERM, [this](int) { on_signal(); });
  loop_.on_signal(SIGINT, [this](int) { on_signal(); });
  if (!hooks_.on_ready) loop_.on_held_signal(SIGHUP, [this] { reread(); });
  std::thread engine_thread([this] { engine_main(); });
  if (hooks_.recorder) hooks_.recorder->attach("network loop");
  loop_.run();
  trace::Recorder::detach();
  engine_thread.join();
  search_desk_.reset();
  api_.reset();
  pull_desk_.reset();  // After the Api, which has these.
  media_fetcher_.reset();
  host_.reset();
  http_.reset();
  if (failure_) return tl::unexpected(*failure_);
  log::info("server stopped");
  return {};
}

host::LocalHost::PresetSource preset_source(const Options& options) {
  return [options] {
    return options.models.empty() ? cached_presets(options) : read_presets(options, options.models);
  };
}

}  // namespace

Result<void> serve(const Options& options) {
  if (options.trace.empty()) return serve(options, {});
  trace::Recorder recorder;
  WEIR_TRY(serve(options, {.recorder = &recorder, .on_ready = {}}));
  return recorder.write(options.trace);
}

Result<void> serve(const Options& given, const ServeHooks& hooks) {
  Options options = given;
  log::configure(options.log_level, options.log_format);
  if (!hooks.on_ready) net::hold_signal(SIGHUP);  // A command ends with its terminal.
  if (!options.log_file.empty()) WEIR_TRY(log::to_file(options.log_file));
  std::signal(SIGPIPE, SIG_IGN);
  net::ServiceManager manager;
  if (!hooks.on_ready) {
    WEIR_ASSIGN(manager, net::ServiceManager::from_environment());
  }
  net::raise_file_limit();
  // Asks the kernel for the AMX tiles, before other threads start.
  WEIR_TRY(kernels::choose_isa(options.isa));
  WEIR_ASSIGN(std::vector<api::KeySpec> keys, load_keys(options));
  if (options.model.empty()) {
    const host::LocalHost::PresetSource source = preset_source(options);
    WEIR_ASSIGN(std::vector<ModelPreset> presets, source());
    // The built-in model alone takes the path of one model.
    if (!options.models.empty() || presets.size() > 1) {
      Server server(options, std::move(keys), hooks, std::nullopt, std::move(manager));
      server.serve_several(source, std::move(presets));
      return server.run();
    }
  }
  WEIR_ASSIGN(const ModelSource source, find_source(options));
  const bool absent = source.name && source.path.empty();
  if (!absent) options.model = source.path;
  Server server(options, std::move(keys), hooks, absent ? source.name : std::nullopt,
                std::move(manager));
  if (!absent) WEIR_TRY(server.choose());
  return server.run();
}

}  // namespace weir
