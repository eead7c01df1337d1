#include "server.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "api/api.h"
#include "api/guard.h"
#include "api/loading.h"
#include "api/sampling_fields.h"
#include "base/byte_size.h"
#include "base/log.h"
#include "base/memory_pressure.h"
#include "base/thread_team.h"
#include "exec/cpu_executor.h"
#include "kv/kv_cache.h"
#include "net/file_limit.h"
#include "net/http.h"
#include "net/loop.h"
#include "net/tls.h"
#include "program/allocator.h"
#include "program/commit.h"
#include "program/expert_streaming.h"
#include "program/key_file.h"
#include "program/memory_plan.h"
#include "program/model_choice.h"
#include "program/weight_watch.h"
#include "sched/engine.h"
#include "ssd/calibration.h"
#include "ssd/expert_metrics.h"
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

// Experts from disk: how often the disk's notices are logged, and what happened is summed up.
constexpr uint64_t kNoticeMs = 1000, kExpertLineMs = 60'000;
// Weights that are used from their files: how often these are looked at.
constexpr uint64_t kWeightLookMs = 1000;
// The kernel computes its averages of waiting for memory so often.
constexpr uint64_t kPressureMs = 2000;

size_t power_of_two_above(size_t n) {
  size_t power = 1;
  while (power < n) power *= 2;
  return power;
}

log::Level level_of(const std::string& name) {
  if (name == "debug") return log::Level::kDebug;
  if (name == "warn") return log::Level::kWarn;
  if (name == "error") return log::Level::kError;
  return log::Level::kInfo;
}

// Everything that speaks text: loaded on its own thread while the engine thread loads the weights.
struct TextParts {
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplate> chat_template;
  std::optional<text::ChatTemplate> tool_use_template;
  std::string chat_template_source;  // Empty: there is none.
  api::GenerationDefaults defaults;
  card::EmbeddingSettings embedding;
  api::RerankConfig rerank;
};

// Unused pages keep their memory for a minute, cached ones longer: never shorter than unused ones.
kv::PageKeeper::Times keep_times(const Options& options) {
  kv::PageKeeper::Times times;
  times.cached = std::chrono::seconds(options.cache_idle);
  if (options.cache_idle > 0) times.free = std::min(times.free, times.cached);
  return times;
}

// What --pooling makes of the model's own.
card::EmbeddingSettings with_pooling(card::EmbeddingSettings config, const std::string& pooling) {
  if (pooling == "auto") return config;
  config.pooling = pooling == "last"   ? card::Pooling::kLast
                   : pooling == "mean" ? card::Pooling::kMean
                                       : card::Pooling::kCls;
  config.refusal.clear();
  return config;
}

Result<TextParts> load_text(const card::ModelCard& card, const Options& options) {
  TextParts parts;
  WEIR_ASSIGN(const FileView json, card.open_tokenizer());
  WEIR_ASSIGN(parts.tokenizer, text::Tokenizer::load(json.text()));
  parts.defaults = api::generation_defaults(card.generation);
  parts.embedding = with_pooling(card.embedding, options.pooling);
  std::optional<std::string> source = card.tokenizer.chat_template;
  if (!options.chat_template.empty()) {
    WEIR_ASSIGN(source, read_file(options.chat_template, size_t{1} << 20));
  }
  if (source) {
    WEIR_ASSIGN(parts.chat_template, text::ChatTemplate::parse(*source));
    parts.chat_template_source = std::move(*source);
  }
  if (card.tokenizer.tool_use_template) {
    WEIR_ASSIGN(parts.tool_use_template,
                text::ChatTemplate::parse(*card.tokenizer.tool_use_template));
  }
  WEIR_ASSIGN(parts.rerank, api::rerank_config(card.rerank, *parts.tokenizer,
                                               parts.chat_template_source, options.reranker));
  for (const SamplingOption& option : sampling_options(options))
    if (option.value) parts.defaults.set(option.field, *option.value, api::kFromCommandLine);
  return parts;
}

// Of all weights, those of experts on disk too.
int64_t model_bytes(const model::Model& model) {
  const ssd::ExpertCatalogue* experts = model.expert_catalogue();
  return model.memory().packed_weights + model.memory().mapped_weights +
         (experts == nullptr ? 0 : static_cast<int64_t>(experts->bank_bytes()));
}

class Server {
 public:
  Server(const Options& options, std::vector<api::KeySpec> keys, const ServeHooks& hooks,
         ModelChoice choice)
      : options_(options),
        keys_(std::move(keys)),
        hooks_(hooks),
        choice_(std::move(choice)),
        handle_(options.queue,
                power_of_two_above(2 * static_cast<size_t>(options.queue) + kInboxSlack)),
        limit_(memory_limit(options)),
        loading_(split_list(options.cors)),
        guard_({.allowed_hosts = split_list(options.allowed_hosts),
                .own_names = api::own_names(options.host),
                .tls = !options.tls_cert.empty()},
               api::CorsPolicy(split_list(options.cors))) {}

  Result<void> run();

 private:
  // Network.
  Result<void> listen();
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

  // Engine thread.
  void engine_main();
  Result<void> load(ThreadTeam& team);
  void become_ready(TextParts text);
  void watch_experts();
  void watch_weights();
  void watch_pressure();
  void release_freed();
  void print_plan() const;
  void print_address() const;

  const Options options_;
  std::vector<api::KeySpec> keys_;
  const ServeHooks& hooks_;
  const ModelChoice choice_;
  sched::EngineHandle handle_;
  const MemoryLimit limit_;
  const api::LoadingAnswers loading_;
  const api::Guard guard_;  // Of both.
  const steady_clock::time_point start_ = steady_clock::now();

  net::Loop loop_;
  std::unique_ptr<net::HttpServer> http_;
  std::shared_ptr<net::TlsContext> tls_;
  std::unique_ptr<TextParts> text_;
  std::unique_ptr<api::Api> api_;  // Set on the loop's thread when the model is loaded.
  bool draining_ = false;          // /ready says 503.
  bool listening_ = true;          // Until --drain-delay has passed, too.
  bool cancelled_ = false;         // The drain's time is over.
  bool finishing_ = false;
  bool stopped_ = false;
  steady_clock::time_point drain_begin_;  // After --drain-delay.

  std::unique_ptr<model::Model> model_;
  std::unique_ptr<exec::Executor> executor_;
  std::unique_ptr<sched::Engine> engine_;
  MemoryPlan plan_;
  std::optional<Error> failure_;
};

Result<void> Server::listen() {
  net::HttpLimits limits;
  limits.connections_max = plan_connections(options_);
  const BodyPlan bodies = plan_bodies(options_, limit_);
  limits.body_bytes_max = static_cast<size_t>(bodies.largest);
  limits.arriving_bytes_max = static_cast<size_t>(bodies.arriving);
  limits.small_bodies_bytes_max = static_cast<size_t>(bodies.small);
  limits.heads_bytes_max = static_cast<size_t>(plan_heads(options_, limit_));
  limits.answers_bytes_max = static_cast<size_t>(plan_answers(limit_));
  limits.idle_timeout_ms = static_cast<uint64_t>(options_.idle_timeout) * 1000;
  http_ = std::make_unique<net::HttpServer>(
      loop_, limits,
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
  WEIR_TRY(http_->listen_tcp(options_.host, static_cast<uint16_t>(options_.port)));
  if (!options_.unix_socket.empty()) WEIR_TRY(http_->listen_unix(options_.unix_socket));
  warn_of_exposure();
  return {};
}

void Server::warn_of_exposure() const {
  if (http_->is_public() && keys_.empty())
    log::warn("server listens on " + options_.host +
              " without keys: whoever reaches this machine may use it (--api-key-file asks for "
              "keys, --host 127.0.0.1 keeps it to this machine)");
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
  if (!options_.api_key_file.empty()) reread_keys();
  if (tls_) {
    if (const Result<void> reloaded = tls_->reload(); !reloaded)
      log::error("tls certificate kept: " + reloaded.error().message);
    else
      log_certificate();
  }
  warn_of_exposure();
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
  if (options_.drain_delay == 0)
    stop_listening();
  else
    log::info("server is not ready any more, and serves on for " +
              std::to_string(options_.drain_delay) + " s (a second signal stops at once)");
  loop_.every(kDrainTickMs, [this] { hurry_drain(); });
}

void Server::stop_listening() {
  listening_ = false;
  log::info("server drains open=" + std::to_string(handle_.open()) + " (open answers have " +
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
    log::warn("server cancels what is still open=" + std::to_string(handle_.open()));
    handle_.drain();  // Before: nothing may be submitted behind the last cancellation.
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
    stopped_ = true;  // From here on engine_ is its thread's alone.
    engine_->stop();
    loop_.stop();
  });
}

void Server::engine_main() {
  pthread_setname_np(pthread_self(), "weir-engine");
  ThreadTeam team(choice_.threads, false);
  if (Result<void> loaded = load(team); !loaded) {
    failure_ = loaded.error();
    loop_.stop();
    return;
  }
  if (trace::Recorder* recorder = hooks_.recorder)
    team.run([&](int member) {
      recorder->attach(member == 0 ? "engine" : "team " + std::to_string(member));
    });
  engine_->run();
  engine_.reset();    // On the thread that owns what it holds.
  executor_.reset();  // Before the team that it runs on.
}

Result<void> Server::load(ThreadTeam& team) {
  Result<TextParts> text = fail(ErrorCode::kConfig, "not loaded");
  std::thread text_thread([&] { text = load_text(choice_.model_card, options_); });

  model::ModelOptions model_options;
  model_options.compute = choice_.compute;
  model_options.rows_max = options_.prefill_size;
  model_options.context_max = options_.ctx_size;
  model_options.stream_experts = options_.stream_experts;
  const kernels::Ops& ops = kernels::ops_for(choice_.isa);
  Result<std::unique_ptr<model::Model>> model =
      bind_model(choice_.model_card, model_options, limit_, ops, team.members());
  const auto plan_for = [this](const std::unique_ptr<model::Model>& bound) -> Result<MemoryPlan> {
    WEIR_ASSIGN(const ModelFootprint needed, footprint(*bound, choice_.kv_type));
    return plan_memory(options_, limit_, needed);
  };
  Result<MemoryPlan> plan = model.and_then(plan_for);
  Result<void> opened;
  std::unique_ptr<exec::Executor> executor;
  if (plan) {
    executor = std::make_unique<exec::CpuExecutor>(**model, ops, team);
    auto printed = steady_clock::now();
    opened = executor->place_weights([&printed](int64_t done, int64_t total) {
      const auto now = steady_clock::now();
      if (now - printed < std::chrono::seconds(1)) return;
      printed = now;
      log::info("model loading " + human_bytes(done) + " of " + human_bytes(total));
    });
    if (opened)
      opened = open_experts(**model, options_, plan->expert_bytes,
                            sched::sequences_max(options_.queue, plan->parallel));
  }
  text_thread.join();
  if (!plan) return tl::unexpected(plan.error());
  WEIR_TRY(std::move(opened));
  if (!text) return tl::unexpected(text.error());
  plan_ = std::move(*plan);
  model_ = std::move(*model);
  WEIR_ASSIGN(const std::string lacking,
              text::check_vocabulary(*text->tokenizer, model_->spec().vocab_size));
  if (!lacking.empty()) log::warn("model " + lacking);

  WEIR_ASSIGN(kv::MemoryLayout layout,
              kv::MemoryLayout::make(model_->memory_needs(), choice_.kv_type));
  WEIR_TRY(take_kv(*executor, std::move(layout), plan_));
  executor_ = std::move(executor);

  sched::EngineOptions engine_options;
  engine_options.step_tokens_max = options_.prefill_size;
  engine_options.step_seconds_max = options_.max_step_ms.value_or(0) / 1000;
  engine_options.running_max = plan_.parallel;
  engine_options.queue_max = options_.queue;
  engine_options.context_max = plan_.context_max;
  engine_options.prefix_cache = options_.prefix_cache;
  engine_options.keep = keep_times(options_);
  engine_options.on_rest = [this, &team] {
    team.run([](int) { purge_allocator(); });
    loop_.post([this] { release_freed(); });
  };
  if (ssd::ExpertStore* experts = model_->experts())
    engine_options.on_idle = [experts] { experts->adjust_memory(); };
  engine_ = std::make_unique<sched::Engine>(engine_options, *executor_, handle_,
                                            [this] { loop_.wake(); });
  loop_.post([this, parts = std::make_shared<TextParts>(std::move(*text))] {
    become_ready(std::move(*parts));
  });
  return {};
}

void Server::become_ready(TextParts text) {
  text_ = std::make_unique<TextParts>(std::move(text));
  api::ApiConfig config;
  config.given_names = split_list(options_.alias);
  config.any_name = std::erase(config.given_names, "*") > 0;
  config.model_id =
      config.given_names.empty() ? choice_.model_card.files.name() : config.given_names.front();
  config.aliases = {choice_.model_card.files.name(), "default"};
  config.aliases.insert(config.aliases.end(), config.given_names.begin(), config.given_names.end());
  if (!choice_.model_card.files.folder().empty())
    config.aliases.push_back(choice_.model_card.files.folder());
  config.config_overrides = options_.config_override;
  config.created = std::time(nullptr);
  config.context_max = plan_.context_max;
  config.prompt_max = options_.max_prompt_tokens;
  config.vocab_size = model_->spec().vocab_size;
  config.hidden_size = model_->spec().hidden_size;
  config.embedding = text_->embedding;
  config.rerank = text_->rerank;
  config.defaults = text_->defaults;
  config.tokenizer = text_->tokenizer.get();
  if (text_->chat_template) config.chat_template = &*text_->chat_template;
  if (text_->tool_use_template) config.tool_use_template = &*text_->tool_use_template;
  config.special_tokens = choice_.model_card.tokenizer.special_tokens;
  config.tool_parser = options_.tool_parser;
  config.reasoning_format = options_.reasoning_format;
  config.trust_request_template = options_.trust_request_template;
  if (options_.thinking != "auto") config.thinking = options_.thinking == "on";
  config.reasoning_budget = options_.reasoning_budget;
  config.reasoning_budget_message = options_.reasoning_budget_message;
  config.engine = &handle_;
  config.loop = &loop_;
  config.facts = {.context_trained = model_->spec().context_max,
                  .hidden_size = model_->spec().hidden_size,
                  .parameters = model_->memory().parameters,
                  .bytes = model_bytes(*model_),
                  .formats = model_->memory().formats};
  config.chat_template_source = text_->chat_template_source;
  config.parallel = plan_.parallel;
  config.queue_timeout_s = options_.queue_timeout;
  config.request_timeout_s = options_.request_timeout;
  config.api_keys = keys_;
  config.cors_origins = split_list(options_.cors);
  config.max_tokens_default = options_.max_tokens;
  config.log_bytes_max = static_cast<size_t>(plan_.request_bytes);
  config.responses_bytes_max = static_cast<size_t>(plan_.responses_bytes);
  config.automata_bytes_max = static_cast<size_t>(plan_.automata_bytes);
  config.preparing_bytes_max = static_cast<size_t>(plan_.bodies.preparing);
  config.version = kVersion;
  config.commit = commit();
  config.kernels = kernels::isa_name(choice_.isa);
  api_ = std::make_unique<api::Api>(std::move(config));
  api_->set_http_stats(&http_->stats());
  if (model_->experts() != nullptr) watch_experts();
  if (!model_->files().in_place.empty()) watch_weights();
  watch_pressure();
  print_plan();
  if (hooks_.on_ready)
    return hooks_.on_ready(http_->port(), [this] { loop_.post([this] { on_signal(); }); });
  print_address();
}

// Experts from disk: figures, what the disk has to say, and a line a minute.
void Server::watch_experts() {
  const auto calibration = ssd::load_calibration(model_->expert_catalogue()->main_file());
  api_->set_more_metrics(
      [page = ssd::ExpertPage(*model_->experts(), calibration ? calibration->bytes_per_second : 0)](
          std::string& text) mutable { page.render(text); });
  loop_.every(kNoticeMs, [this] {
    while (const auto notice = model_->experts()->take_notice()) log::warn("experts " + *notice);
  });
  loop_.every(kExpertLineMs, [this, minute = std::make_shared<ssd::ExpertMinute>()] {
    if (const std::string line = minute->line(*model_->experts()); !line.empty())
      log::info("experts " + line);
  });
}

void Server::watch_weights() {
  loop_.every(kWeightLookMs,
              [watch = WeightWatch(model_->files().in_place, handle_)]() mutable { watch.look(); });
}

// Experts and pages give memory back while the machine, or this group, waits for it.
void Server::watch_pressure() {
  loop_.every(kPressureMs, [this, policy = PressurePolicy()]() mutable {
    const double pressure = memory_pressure();
    const int share = policy.share();
    const PressureAdvice advice = policy.observe(pressure, steady_clock::now());
    if (advice == PressureAdvice::kNothing || stopped_) return;
    const bool high = advice == PressureAdvice::kGiveBack;
    ssd::ExpertStore* const experts = model_->experts();
    if (experts) experts->allow(policy.share());
    if (high) engine_->shed_memory();
    engine_->wake();  // Who has no request gives memory back all the same.
    // Pressure that lasts is told until the share has come to its end.
    if (policy.share() == share || (!high && !experts)) return;
    log::warn("memory pressure=" + std::to_string(pressure) + "%" +
              (high ? ": unused pages and the oldest prompts go back" : "") +
              (experts ? " slots_allowed=" + std::to_string(policy.share()) + "%" : ""));
  });
}

// On the network loop, when nothing has been computed for a while.
void Server::release_freed() {
  purge_allocator();
  // Each of these may have freed what requests took while they were prepared.
  for (int i = 0; i < net::Loop::kPoolThreads; ++i) loop_.run_in_pool(purge_allocator, [] {});
  if (api_) api_->in_background(purge_allocator);
}

void Server::print_plan() const {
  const model::ModelSpec& spec = model_->spec();
  log::info("model " + choice_.model_card.files.name() + " family=" + spec.family + " weights='" +
            model_->memory().formats + "' layers=" + std::to_string(model::layer_count(spec)) +
            " width=" + std::to_string(spec.hidden_size) +
            " vocab=" + std::to_string(spec.vocab_size) +
            (text_->chat_template ? "" : " (no chat template: only /v1/completions)"));
  for (const std::string& change : options_.config_override)
    log::warn("model config.json is overridden: " + change);
  log::info("kernels isa=" + std::string(kernels::isa_name(choice_.isa)) +
            " threads=" + std::to_string(choice_.threads) + " compute=" + options_.compute +
            " kv=" + (choice_.kv_type == kernels::FloatType::kF32 ? "f32" : "f16") +
            " processor='" + kernels::processor_name() + "' malloc='" + allocator_name() + "'");
  log::info("sampling " + api::describe(text_->defaults));
  if (const ssd::ExpertStore* store = model_->experts()) {
    log::info("experts " + expert_summary(*model_, store->plan()) + " (" +
              std::string(store->mode()) + ", from " + expert_source(*model_) + ")");
    const std::string warning = expert_warning(store->plan());
    if (!warning.empty()) log::warn("experts " + warning);
  }
  std::string taken, most;
  for (const MemoryPlan::Line& line : plan_.lines) {
    const auto list = [&line](std::string& text, int64_t bytes) {
      if (bytes > 0) text += (text.empty() ? "" : ", ") + line.what + " " + human_bytes(bytes);
    };
    list(taken, line.taken);
    list(most, line.bytes - line.taken);
  }
  log::info("memory taken " + human_bytes(plan_.taken) + " (" + taken + "); at most " +
            human_bytes(plan_.total) + " of " + human_bytes(plan_.limit) + " (" + plan_.limit_from +
            "), as it is used: " + most);
  if (const std::string note = context_note(plan_); !note.empty()) log::info(note);
  if (plan_.state_bytes > 0 && plan_.checkpoints == 0 && options_.prefix_cache)
    log::info(
        "prefix cache: off, because no checkpoints of states fit into a quarter of the memory "
        "for keys, values and states, or beside a whole context");
  log::info("limits context=" + std::to_string(plan_.context_max) +
            " parallel=" + std::to_string(plan_.parallel) +
            " kv_tokens=" + std::to_string(int64_t{plan_.kv_pages} * kernels::kPageTokens) +
            " queue=" + std::to_string(options_.queue) +
            " prefill=" + std::to_string(options_.prefill_size));
}

void Server::print_address() const {
  const bool ipv6 = options_.host.find(':') != std::string::npos;
  const std::string host = ipv6 ? "[" + options_.host + "]" : options_.host;
  const std::string base =
      (tls_ ? "https://" : "http://") + host + ":" + std::to_string(http_->port());
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.2f",
                std::chrono::duration<double>(steady_clock::now() - start_).count());
  log::info("server ready in " + std::string(seconds) + " s at " + base +
            (options_.unix_socket.empty() ? "" : " and unix:" + options_.unix_socket));
  log::flush(std::chrono::milliseconds(100));  // On a terminal the greeting stands after it.
  const std::string key = keys_.empty() ? "" : " -H 'Authorization: Bearer YOUR_KEY'";
  std::printf(
      "\nWeir is ready: %s/v1\n\n"
      "  curl %s/v1/chat/completions%s -H 'Content-Type: application/json' \\\n"
      "    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Tell me a short "
      "story.\"}]}'\n\n",
      base.c_str(), base.c_str(), key.c_str());
  std::fflush(stdout);
}

Result<void> Server::run() {
  WEIR_TRY(listen());
  loop_.on_signal(SIGTERM, [this](int) { on_signal(); });
  loop_.on_signal(SIGINT, [this](int) { on_signal(); });
  if (!hooks_.on_ready) loop_.on_held_signal(SIGHUP, [this] { reread(); });
  std::thread engine_thread([this] { engine_main(); });
  if (hooks_.recorder) hooks_.recorder->attach("network loop");
  loop_.run();
  trace::Recorder::detach();
  engine_thread.join();
  api_.reset();
  http_.reset();
  if (failure_) return tl::unexpected(*failure_);
  log::info("server stopped");
  return {};
}

}  // namespace

Result<void> serve(const Options& options) {
  if (options.trace.empty()) return serve(options, {});
  trace::Recorder recorder;
  WEIR_TRY(serve(options, {.recorder = &recorder, .on_ready = {}}));
  return recorder.write(options.trace);
}

Result<void> serve(const Options& options, const ServeHooks& hooks) {
  log::configure(level_of(options.log_level),
                 options.log_format == "json" ? log::Format::kJson : log::Format::kText);
  if (!hooks.on_ready) net::hold_signal(SIGHUP);  // A command ends with its terminal.
  if (!options.log_file.empty()) WEIR_TRY(log::to_file(options.log_file));
  std::signal(SIGPIPE, SIG_IGN);
  net::raise_file_limit();
  WEIR_ASSIGN(ModelChoice choice, choose_model(options));
  WEIR_ASSIGN(std::vector<api::KeySpec> keys, load_keys(options));
  Server server(options, std::move(keys), hooks, std::move(choice));
  return server.run();
}

}  // namespace weir
