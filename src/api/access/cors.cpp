#include "api/access/cors.h"

#include <algorithm>

namespace weir::api {

namespace {

// Beyond the few that the Fetch standard shows to every page: whatever header of ours a client may
// want to read. Named one by one, because '*' means nothing where credentials are allowed.
constexpr std::string_view kExposed =
    "x-request-id, request-id, retry-after, retry-after-ms, x-weir-ignored, allow, "
    "www-authenticate, x-ratelimit-limit-requests, x-ratelimit-remaining-requests, "
    "x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, "
    "x-ratelimit-reset-tokens";

}  // namespace

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
  // A cache must not give one origin's answer, or one for no origin at all, to another.
  headers.emplace_back("Vary", "Origin");
  if (!allows(origin)) return;
  headers.emplace_back("Access-Control-Allow-Origin", any_ ? "*" : std::string(origin));
  if (!any_) headers.emplace_back("Access-Control-Allow-Credentials", "true");
  headers.emplace_back("Access-Control-Expose-Headers", kExposed);
}

std::optional<net::HttpResponder::Headers> CorsPolicy::preflight(
    const net::HttpRequest& request) const {
  if (request.method != "OPTIONS" || request.header("origin").empty() ||
      request.header("access-control-request-method").empty())
    return std::nullopt;
  net::HttpResponder::Headers headers;
  if (!allows(request.header("origin"))) return headers;
  headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
  // "*" would not cover Authorization by the Fetch standard, so what was asked is echoed.
  const std::string_view asked = request.header("access-control-request-headers");
  if (!asked.empty()) headers.emplace_back("Access-Control-Allow-Headers", std::string(asked));
  // Chrome keeps a preflight for two hours at most.
  headers.emplace_back("Access-Control-Max-Age", "7200");
  return headers;
}

bool is_origin(std::string_view text) {
  const size_t mark = text.find("://");
  if (mark == 0 || mark == std::string_view::npos) return false;
  const std::string_view scheme = text.substr(0, mark), host = text.substr(mark + 3);
  const auto is_low = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  // Of a name, an address ([::1] too) and a port.
  const auto is_of_host = [&](char c) {
    return is_low(c) || std::string_view("-._:[]").find(c) != std::string_view::npos;
  };
  const auto is_of_scheme = [&](char c) { return is_low(c) || c == '-' || c == '+' || c == '.'; };
  const std::string_view default_port = scheme == "http" ? ":80" : scheme == "https" ? ":443" : "";
  return !host.empty() && host.front() != ':' && std::ranges::all_of(host, is_of_host) &&
         std::ranges::all_of(scheme, is_of_scheme) && !host.ends_with(':') &&
         (default_port.empty() || !host.ends_with(default_port));
}

}  // namespace weir::api
