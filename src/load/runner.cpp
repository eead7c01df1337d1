// Runner: the phases of a run. Model, idle connections, warm-up, measurement, end.
#include "load/runner.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "base/json.h"

namespace weir::load {

namespace {

// Arrivals of an open loop are due to the millisecond.
constexpr uint64_t kTickMs = 1;
constexpr uint64_t kTimeoutTicks = 100;
// Idle connections being opened at the same time; a server's backlog is at least 128.
constexpr size_t kIdleOpening = 64;

double seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace

Runner::Runner(const LoadOptions& options, net::HttpTarget target)
    : options_(options), target_(std::move(target)), figures_(options_) {}

Result<void> Runner::run() {
  loop_.every(kTickMs, [this] { tick(); });
  for (const int number : {SIGINT, SIGTERM})
    loop_.on_signal(number, [this](int) {
      figures_.interrupted = true;
      end();
    });
  loop_.post([this] { ask_model(); });
  loop_.run();
  if (!fatal_.empty()) return fail(ErrorCode::kIo, fatal_);
  return {};
}

// Also finds out whether the server is there at all.
void Runner::ask_model() {
  if (!options_.model.empty() || (options_.clients == 0 && options_.rate == 0)) {
    figures_.model = options_.model;
    return begin(Phase::kIdle);
  }
  static constexpr size_t kAnswerMax = 1 << 20;
  const auto stop = [this](const std::string& why) {
    fatal_ = "GET /v1/models: " + why + "; is the server up? --model NAME leaves this out";
    end();
  };
  model_client_ = std::make_unique<net::HttpClient>(
      loop_, target_,
      net::HttpClient::Callbacks{
          .on_head = [](int, std::string_view) {},
          .on_body =
              [this](std::string_view bytes) {
                if (model_answer_.size() + bytes.size() <= kAnswerMax) model_answer_ += bytes;
              },
          .on_end =
              [this, stop] {
                const Result<JsonDoc> doc = JsonDoc::parse(model_answer_);
                std::string_view id;
                if (!doc || doc->root()["data"].at(0)["id"].get(id) != simdjson::SUCCESS)
                  return stop("no model in the answer " + model_answer_.substr(0, 200));
                figures_.model = id;
                begin(Phase::kIdle);
              },
          .on_error = stop});
  std::string request = "GET /v1/models HTTP/1.1\r\nHost: " + options_.authority() + "\r\n";
  if (!options_.api_key.empty()) request += "Authorization: Bearer " + options_.api_key + "\r\n";
  model_client_->request(request + "\r\n");
}

void Runner::begin(Phase phase) {
  phase_ = phase;
  begun_ = 0;
  free_.clear();
  for (const auto& client : clients_) client->begun = 0;
  switch (phase) {
    case Phase::kIdle:
      work_ = std::make_unique<Work>(options_, figures_.model);
      open_idle();
      return;
    case Phase::kWarmup:
      if (options_.warmup == 0) return begin(Phase::kMeasure);
      while (clients_.size() < static_cast<size_t>(std::max(options_.clients, 1))) add_client();
      break;
    case Phase::kMeasure:
      if (options_.rate == 0)
        while (clients_.size() < static_cast<size_t>(options_.clients)) add_client();
      usage_at_begin_ = server_usage();
      begin_ns_ = last_end_ns_ = now_ns();
      if (options_.rate > 0) {
        for (const auto& client : clients_) free_.push_back(client.get());
        next_arrival_s_ = work_->next_gap_s();
        return;  // tick() does the rest.
      }
      break;
    default:
      return;
  }
  for (const auto& client : clients_) free_.push_back(client.get());
  start_free(now_ns());
}

void Runner::open_idle() {
  if (options_.idle == 0) return begin(Phase::kWarmup);
  for (int32_t i = 0; i < options_.idle; ++i) {
    const auto opened = [this] { next_idle(); };
    idle_.push_back(std::make_unique<net::HttpClient>(
        loop_, target_,
        net::HttpClient::Callbacks{.on_head = {},
                                   .on_body = {},
                                   .on_end = opened,
                                   .on_error = [opened](const std::string&) { opened(); }}));
  }
  for (; idle_opening_ < std::min(kIdleOpening, idle_.size()); ++idle_opening_)
    idle_[idle_opening_]->connect();
}

// One more has been opened, or has failed.
void Runner::next_idle() {
  if (idle_opening_ < idle_.size()) {
    idle_[idle_opening_++]->connect();
  } else if (++idle_opening_ == idle_.size() + std::min(kIdleOpening, idle_.size())) {
    begin(Phase::kWarmup);
  }
}

void Runner::tick() {
  const int64_t now = now_ns();
  if (phase_ == Phase::kMeasure && options_.rate > 0) {
    start_arrivals(now);
  } else {
    start_free(now);
  }
  if (++ticks_ % kTimeoutTicks == 0)
    for (const auto& client : clients_) client->check_timeout(now);
  end_if_done();
}

void Runner::start_free(int64_t now) {
  for (LoadClient* client : std::exchange(free_, {}))
    if (may_start(now, *client)) start_next(*client, now);
}

void Runner::start_arrivals(int64_t now) {
  while (seconds(now - begin_ns_) >= next_arrival_s_) {
    const int64_t due_ns = begin_ns_ + static_cast<int64_t>(next_arrival_s_ * 1e9);
    if (!may_start(due_ns)) return;
    next_arrival_s_ += work_->next_gap_s();
    if (free_.empty() && clients_.size() >= static_cast<size_t>(options_.connections_max)) {
      ++figures_.not_sent;
      ++begun_;
      ++jobs_;  // The work of the others stays the same.
      continue;
    }
    LoadClient* client = nullptr;
    if (free_.empty()) {
      client = &add_client();
    } else {
      client = free_.back();
      free_.pop_back();
    }
    start_next(*client, due_ns);
  }
}

bool Runner::may_start(int64_t now) const {
  if (phase_ == Phase::kWarmup) return begun_ < options_.warmup;
  if (phase_ != Phase::kMeasure) return false;
  if (options_.duration_s > 0 && seconds(now - begin_ns_) >= options_.duration_s) return false;
  return options_.rate == 0 || options_.requests == 0 || begun_ < options_.requests;
}

bool Runner::may_start(int64_t now, const LoadClient& client) const {
  if (!may_start(now)) return false;
  return phase_ == Phase::kWarmup || options_.requests == 0 || client.begun < options_.requests;
}

LoadClient& Runner::add_client() {
  clients_.push_back(std::make_unique<LoadClient>(
      loop_, target_, options_, figures_.gaps(),
      [this](LoadClient& client, const Outcome& outcome) { on_done(client, outcome); }));
  return *clients_.back();
}

void Runner::start_next(LoadClient& client, int64_t due_ns) {
  const bool is_first = client.begun++ == 0;
  ++begun_;
  ++busy_;
  const bool measured = phase_ == Phase::kMeasure && !(options_.drop_first && is_first);
  client.start(work_->job(jobs_++), due_ns, measured);
}

void Runner::on_done(LoadClient& client, const Outcome& outcome) {
  --busy_;
  last_end_ns_ = outcome.end_ns;
  if (client.is_measured()) {
    figures_.add(outcome);
  } else if (phase_ == Phase::kMeasure) {
    ++firsts_;
    firsts_s_ += seconds(outcome.end_ns - begin_ns_);
  }
  if (phase_ != Phase::kWarmup && phase_ != Phase::kMeasure) return;
  const bool is_open_loop = phase_ == Phase::kMeasure && options_.rate > 0;
  // A server that cannot be reached is asked again at the next tick, not at once.
  if (is_open_loop || outcome.status == 0) {
    free_.push_back(&client);
  } else if (may_start(outcome.end_ns, client)) {
    start_next(client, now_ns());
  }
}

void Runner::end_if_done() {
  const int64_t now = now_ns();
  if (busy_ > 0) return;
  if (phase_ == Phase::kWarmup) return begin(Phase::kMeasure);
  if (phase_ != Phase::kMeasure) return;
  if (options_.rate > 0 || clients_.empty()) {
    if (options_.rate > 0 ? may_start(now) : seconds(now - begin_ns_) < options_.duration_s) return;
    if (options_.rate == 0) last_end_ns_ = now;
  } else if (!free_.empty()) {
    return;
  }
  end();
}

ProcessUsage Runner::server_usage() const {
  return options_.pid > 0 ? process_usage(options_.pid) : ProcessUsage{};
}

void Runner::end() {
  if (phase_ == Phase::kEnd) return;
  const bool measured = phase_ == Phase::kMeasure;
  phase_ = Phase::kEnd;
  if (measured) {
    // Until the last answer; an interrupted run until now.
    figures_.server_s = seconds((figures_.interrupted ? now_ns() : last_end_ns_) - begin_ns_);
    figures_.wall_s = figures_.server_s - (firsts_ > 0 ? firsts_s_ / firsts_ : 0);
    figures_.server = server_usage();
    figures_.server.cpu_s -= usage_at_begin_.cpu_s;
  }
  for (const auto& client : clients_) figures_.connections += client->connections();
  for (const auto& client : idle_) figures_.idle_open += client->is_open() ? 1 : 0;
  loop_.stop();
}

}  // namespace weir::load
