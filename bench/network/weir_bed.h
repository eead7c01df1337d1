// WeirBed: Weir's network side as the server builds it (loop, HTTP, API, tokenizer, engine) around
// any model, in this process, so that the loop's thread can be asked what it has used.
//
// Threads: the loop and the engine have their own; the rest is the caller's.
#pragma once

#include <pthread.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "api/api.h"
#include "base/check.h"
#include "cpu_time.h"
#include "net/http.h"
#include "sched/engine_runner.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace weir::bench {

class WeirBed {
 public:
  WeirBed(model::Model& model, const kernels::Ops& ops, sched::RunnerOptions runner,
          const text::Tokenizer& tokenizer)
      : template_(plain_template()) {
    runner.wake = [this] { loop_.wake(); };
    runner_.emplace(model, ops, runner);
    api::ApiConfig config;
    config.model_id = "weir-tiny-moe";
    config.created = 1700000000;
    config.context_max = runner.engine.context_max;
    config.vocab_size = model.spec().vocab_size;
    config.tokenizer = &tokenizer;
    config.chat_template = &template_;
    config.engine = &runner_->handle();
    config.loop = &loop_;
    api_.emplace(std::move(config));
    server_.emplace(
        loop_, net::HttpLimits{},
        [this](net::HttpRequest&& request, net::HttpResponderPtr responder) {
          api_->handle(std::move(request), std::move(responder));
        },
        &api::Api::error_body);
    server_->error_headers([this](int status, const net::HttpRequest& request) {
      return api_->error_headers(status, request);
    });
    server_->wants_body(
        [this](const net::HttpRequest& request) { return api_->wants_body(request); });
    CHECK(server_->listen_tcp("127.0.0.1", 0).has_value());
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "weir-net");
      loop_.run();
    });
  }
  // REQUIRES: the clients have gone.
  ~WeirBed() {
    while (!on_loop<bool>([this] { return api_->idle(); }))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    loop_.stop();
    thread_.join();
    server_.reset();
    api_.reset();
    runner_->stop();
  }
  WeirBed(const WeirBed&) = delete;
  WeirBed& operator=(const WeirBed&) = delete;

  uint16_t port() const { return server_->port(); }
  const sched::EngineStats& engine_stats() { return runner_->handle().stats(); }
  net::Loop& loop() { return loop_; }

  // What the loop's thread has used so far.
  CpuTime cpu() { return on_loop<CpuTime>(thread_cpu); }

 private:
  template <class T, class F>
  T on_loop(F call) {
    std::promise<T> promise;
    loop_.post([&] { promise.set_value(call()); });
    return promise.get_future().get();
  }
  static text::ChatTemplate plain_template() {
    auto parsed = text::ChatTemplate::parse(
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:");
    CHECK(parsed.has_value());
    return std::move(*parsed);
  }

  net::Loop loop_;
  const text::ChatTemplate template_;
  std::optional<sched::EngineRunner> runner_;
  std::optional<api::Api> api_;
  std::optional<net::HttpServer> server_;
  std::thread thread_;
};

}  // namespace weir::bench
