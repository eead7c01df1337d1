#include "api/cors.h"

#include <algorithm>

namespace weir::api {

CorsPolicy::CorsPolicy(std::vector<std::string> origins)
    : origins_(std::move(origins)),
      any_(std::find(origins_.begin(), origins_.end(), "*") != origins_.end()) {}

bool CorsPolicy::allows(std::string_view origin) const {
  return !origin.empty() &&
         (any_ || std::find(origins_.begin(), origins_.end(), origin) != origins_.end());
}

void CorsPolicy::add_headers(const net::HttpRequest& request,
                             net::HttpResponder::Headers& headers) const {
  if (origins_.empty()) return;
  const std::string_view origin = request.header("origin");
  // A cache must not give one origin's answer to another.
  if (!any_) headers.emplace_back("Vary", "Origin");
  if (!allows(origin)) return;
  headers.emplace_back("Access-Control-Allow-Origin", any_ ? "*" : std::string(origin));
  if (!any_) headers.emplace_back("Access-Control-Allow-Credentials", "true");
  headers.emplace_back("Access-Control-Expose-Headers", "x-request-id, retry-after");
}

std::optional<net::HttpResponder::Headers> CorsPolicy::preflight(
    const net::HttpRequest& request) const {
  if (request.method != "OPTIONS" || request.header("origin").empty() ||
      request.header("access-control-request-method").empty())
    return std::nullopt;
  net::HttpResponder::Headers headers;
  add_headers(request, headers);
  if (!allows(request.header("origin"))) return headers;
  headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
  // "*" would not cover Authorization by the Fetch standard, so what was asked is echoed.
  const std::string_view asked = request.header("access-control-request-headers");
  if (!asked.empty()) headers.emplace_back("Access-Control-Allow-Headers", std::string(asked));
  // Chrome keeps a preflight for two hours at most.
  headers.emplace_back("Access-Control-Max-Age", "7200");
  return headers;
}

}  // namespace weir::api
