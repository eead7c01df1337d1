// Api: the OpenAI endpoints. HTTP requests come in, engine requests go out; each open answer is a
// Stream that is looked at on every wake of the loop. It answers with one model, which is loaded,
// or with those of a ModelSet, which come and go.
//
// Threads: everything is called on the loop's thread, or before the loop runs. Slow work (JSON,
// template, tokenizer) goes to the pool and sees only what never changes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/access/keys.h"
#include "api/models/model_registry.h"
#include "api/reference/endpoint_table.h"
#include "api/serving/api_config.h"
#include "net/http.h"

namespace weir::api {

// Several models, and what loads them.
struct ModelSet {
  std::vector<KnownModel> models;  // Not empty.
  ModelRegistry::Limits limits;
  ModelHost* host = nullptr;  // Outlives the Api.
};

class Api {
 public:
  // Takes the loop's on_wake, and a timer of it. With a set, what `config` says of a model is of
  // none, and start() loads what is to be loaded at the start.
  explicit Api(ApiConfig config);
  Api(ApiConfig config, ModelSet set);
  // REQUIRES: idle(), and the loop runs no more.
  ~Api();

  // For HttpServer: its handler, error_body, error_headers and wants_body.
  void handle(net::HttpRequest&& request, net::HttpResponderPtr responder);
  static std::pair<std::string, std::string> error_body(int status, std::string_view message,
                                                        const net::HttpRequest& request);
  net::HttpResponder::Headers error_headers(int status, const net::HttpRequest& request) const;
  bool wants_body(const net::HttpRequest& request) const;

  // Every endpoint, for the reference.
  static std::vector<EndpointDoc> endpoints();

  // Figures of the HTTP server for /metrics; optional. Borrowed.
  void set_http_stats(const net::HttpStats* stats);

  // Further figures for /metrics; optional. Called on the loop's thread.
  void set_more_metrics(std::function<void(std::string&)> render);

  // From now on these keys count. One that was there before, by its secret or else by the name that
  // it was given, keeps its counters and what was used of its limits; requests in flight are
  // answered, whatever becomes of their keys.
  void set_keys(std::vector<KeySpec> keys);

  // From now on /health and /ready say 503. What has been accepted is served, also what is still
  // arriving or being prepared: the caller takes no new connections meanwhile.
  void begin_drain();

  // Of a set. REQUIRES: the loop runs, or is about to.
  void start();
  // Memory is short: models without leases go, unless they are pinned.
  void shed_models();

  // Cancels every open answer; each ends with an error event or response, also what is still being
  // prepared, and what comes from now on. For a shutdown that has waited long enough.
  void cancel_all();

  // Runs `call` on the thread that compiles grammars, when it has nothing to do.
  void in_background(std::function<void()> call);

  // Requests that engines have, waiting or running.
  int32_t open() const;

  // True when no request is being prepared, computed or waited for: every Request is freed, and the
  // engine holds nothing of ours. Clients may still be reading. The engine must not be destroyed
  // before.
  bool idle() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::api
