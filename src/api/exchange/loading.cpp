#include "api/exchange/loading.h"

#include <utility>

namespace weir::api {

LoadingAnswers::LoadingAnswers(std::vector<std::string> cors_origins)
    : policy_{.cors = CorsPolicy(std::move(cors_origins))} {}

void LoadingAnswers::answer(const net::HttpRequest& request, net::HttpResponder& responder) const {
  const auto preflight = policy_.cors.preflight(request);
  const int status = preflight ? 204 : 503;
  net::HttpResponder::Headers headers = error_headers(status, request);
  if (preflight) {
    headers.insert(headers.end(), preflight->begin(), preflight->end());
    return responder.respond(status, headers, {});
  }
  const auto [type, body] = Exchange::error_body(
      status,
      stage_.empty() ? "The model is still loading; try again later."
                     : "The model is not here yet (" + stage_ + "); try again later.",
      request);
  headers.emplace_back("Content-Type", type);
  responder.respond(status, headers, body);
}

net::HttpResponder::Headers LoadingAnswers::error_headers(int status,
                                                          const net::HttpRequest& request) const {
  return Exchange::common_headers(policy_, request, status);
}

}  // namespace weir::api
