#include "api/access/guard.h"

#include <arpa/inet.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/concat.h"
#include "base/log.h"

namespace weir::api {

namespace {

constexpr size_t kShownBytes = 128;  // Of a header, in a message.

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && text.front() != '.' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '.' || c == '_';
         });
}

// "name:port", "[::1]:port" or either without a port, as a lower-case name; empty if it is neither.
std::string host_name(std::string_view host) {
  const size_t bracket = host.starts_with('[') ? host.find(']') : std::string_view::npos;
  const size_t colon = host.find(':', bracket == std::string_view::npos ? 0 : bracket);
  const std::string_view port = host.substr(std::min(colon, host.size()));
  if (!std::all_of(port.begin() + (port.empty() ? 0 : 1), port.end(),
                   [](char c) { return c >= '0' && c <= '9'; }))
    return {};
  std::string_view name = host.substr(0, colon);
  if (name.size() > 1 && name.ends_with('.')) name.remove_suffix(1);  // The root of all names.
  return lower(name);
}

// IPv4 with four numbers, or IPv6 in brackets. A client that uses one has asked no name
// server, so none has lied to it: any will do, because ports are forwarded to addresses that we do
// not know of.
bool is_address(const std::string& name) {
  in6_addr address;
  if (name.starts_with('['))
    return name.ends_with(']') &&
           ::inet_pton(AF_INET6, name.substr(1, name.size() - 2).c_str(), &address) == 1;
  return ::inet_pton(AF_INET, name.c_str(), &address) == 1;
}

// What never leads to another machine by a name server's word (RFC 6761), and the names that
// containers have for their host: host.docker.internal, host.containers.internal, ... No name
// below .internal can be registered.
bool is_local(std::string_view name) {
  return name == "localhost" || name.ends_with(".localhost") ||
         (name.starts_with("host.") && name.ends_with(".internal"));
}

bool matches(const std::string& name, std::string_view pattern) {
  if (pattern == "*") return true;
  if (pattern.starts_with("*.")) return name.ends_with(lower(pattern.substr(1)));
  return name == lower(pattern);
}

// "https://a.example:8443" and "a.example:8443"; a port that its scheme takes for granted may be
// left out of either.
bool is_origin_of(std::string_view origin, std::string_view host) {
  const bool secure = origin.starts_with("https://");
  if (!secure && !origin.starts_with("http://")) return false;
  const std::string_view port = secure ? ":443" : ":80";
  const auto without_port = [&](std::string_view text) {
    if (text.ends_with(port)) text.remove_suffix(port.size());
    return lower(text);
  };
  return !host.empty() && without_port(origin.substr(secure ? 8 : 7)) == without_port(host);
}

bool is_safe(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

std::string quoted(std::string_view header) {
  return concat({"'", header.substr(0, kShownBytes), "'"});
}

std::string unknown_host(std::string_view host) {
  const std::string name = host_name(host);
  const std::string shown = is_name(name) ? name : "NAME";
  return concat(
      {"The host ", quoted(host),
       " is no name of this server, which asks for no key: a web page could have made it lead "
       "here. Expected an IP address, localhost, this machine's name, or a name that is allowed: "
       "start the server with --allowed-hosts ",
       shown, " (WEIR_ALLOWED_HOSTS=", shown, "), or with keys (--api-key)."});
}

}  // namespace

Guard::Guard(GuardConfig config, CorsPolicy cors)
    : config_(std::move(config)), cors_(std::move(cors)) {}

std::optional<std::string> Guard::refusal(const net::HttpRequest& request, bool has_keys) const {
  // Where all pages may ask, a name tells nothing.
  const bool by_name = request.peer_id != net::kUnixPeer && !config_.tls && !cors_.allows_any();
  if (const std::string_view host = request.header("host"); by_name && !knows_host(host)) {
    say_once(said_host_, concat({"host ", quoted(host)}), has_keys);
    if (!has_keys) return unknown_host(host);
  }
  if (has_keys || is_safe(request.method) || !is_of_foreign_page(request, cors_))
    return std::nullopt;
  say_once(said_origin_, concat({"origin ", quoted(request.header("origin"))}), has_keys);
  return foreign_page_refusal(
      request,
      "Requests of other sites' pages are refused by this server, which asks for no key: found ");
}

// HTTP/1.0 may leave it out; browsers never do.
bool Guard::knows_host(std::string_view host) const {
  if (host.empty()) return true;
  const std::string name = host_name(host);
  if (name.empty()) return false;
  const auto is_named = [&](const std::string& pattern) { return matches(name, pattern); };
  return is_address(name) || is_local(name) || std::ranges::any_of(config_.own_names, is_named) ||
         std::ranges::any_of(config_.allowed_hosts, is_named);
}

void Guard::say_once(bool& said, const std::string& what, bool has_keys) const {
  if (std::exchange(said, true)) return;
  log::warn(concat({"guard ", what,
                    has_keys ? " is no name of this server: its keys protect it"
                             : " is refused, as all others that are not allowed"}));
}

bool is_of_foreign_page(const net::HttpRequest& request, const CorsPolicy& cors) {
  const std::string_view origin = request.header("origin"), site = request.header("sec-fetch-site");
  if (cors.allows(origin)) return false;
  // The browser's own word: it has asked for this server's own name, whatever a proxy made of Host.
  if (site == "same-origin") return false;
  if (site == "cross-site") return true;
  if (origin.empty()) return site == "same-site";
  return !is_origin_of(origin, request.header("host"));
}

std::string foreign_page_refusal(const net::HttpRequest& request, std::string_view begin) {
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return concat({begin, "Sec-Fetch-Site without Origin."});
  if (origin == "null")
    return concat({begin,
                   "Origin 'null' (a page from a file, or a frame without rights). Only --cors '*' "
                   "allows it, to all pages."});
  const std::string shown(is_origin(origin) ? origin.substr(0, kShownBytes) : "ORIGIN");
  return concat({begin, "Origin ", quoted(origin), ". Start the server with --cors ", shown,
                 " (WEIR_CORS=", shown, ") to allow it."});
}

std::vector<std::string> own_names(const std::string& listen_host) {
  std::vector<std::string> names = {listen_host};
  char name[HOST_NAME_MAX + 1] = {};
  if (::gethostname(name, sizeof name - 1) == 0 && is_name(name)) {
    const std::string_view whole = name, first = whole.substr(0, whole.find('.'));
    names.emplace_back(whole);
    names.emplace_back(first);
    names.push_back(concat({first, ".local"}));
  }
  return names;
}

bool is_host_pattern(std::string_view text) {
  if (text == "*") return true;
  if (text.starts_with("*.")) text.remove_prefix(2);
  return is_name(text);
}

}  // namespace weir::api
