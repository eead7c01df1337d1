// LoadingAnswers: what the server says while the model is still loading: 503 with Retry-After to
// everything but preflights, which are answered as later. It stands in until the Api can be built.
//
// Threads: one, the network loop.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/exchange/exchange.h"
#include "net/http.h"

namespace weir::api {

class LoadingAnswers {
 public:
  explicit LoadingAnswers(std::vector<std::string> cors_origins);

  // How far it is, for people: "pull 42 %". Empty: it is loading.
  void set_stage(std::string stage) { stage_ = std::move(stage); }

  // For HttpServer: its handler, and its error_headers. Its error_body is Api's.
  void answer(const net::HttpRequest& request, net::HttpResponder& responder) const;
  net::HttpResponder::Headers error_headers(int status, const net::HttpRequest& request) const;

 private:
  const Exchange::Policy policy_;
  std::string stage_;
};

}  // namespace weir::api
