#include "api/access/entrance.h"

#include <string>
#include <string_view>
#include <utility>

#include "api/access/guard.h"
#include "api/access/media_type.h"
#include "base/concat.h"

namespace weir::api {

namespace {

constexpr size_t kShownBytes = 256;  // Of a path, in a message.

// RFC 9110 11.6.1: a 401 says how to do better.
const net::HttpResponder::Headers::value_type kChallenge{"WWW-Authenticate", "Bearer"};

Error unauthorised() {
  return {ErrorCode::kUnauthorized,
          "Incorrect or missing API key: expected a key of this server in 'Authorization: Bearer "
          "KEY'.",
          {},
          "invalid_api_key"};
}

Error forbidden(std::string message) {
  return {ErrorCode::kForbidden, std::move(message), {}, "insufficient_permissions"};
}

Error out_of_scope(const net::HttpRequest& request, Access access, const Key& key) {
  return forbidden(
      concat({"This key may not use ", request.path.substr(0, kShownBytes), ": expected the scope ",
              scope_of(access), ", found ", text_of(key.spec().scopes), "."}));
}

bool has_body(const net::HttpRequest& request) {
  const std::string_view length = request.header("content-length");
  return !request.header("transfer-encoding").empty() || (!length.empty() && length != "0");
}

// A proxy passes it on, for all clients that reach the proxy.
bool is_forwarded(const net::HttpRequest& request) {
  for (const std::string_view name : {"forwarded", "via", "x-forwarded-for"})
    if (!request.header(name).empty()) return true;
  return false;
}

Error closed_because(std::string_view reason) {
  return forbidden(concat(
      {"This server cannot be managed without a key, because ", reason,
       ". Start it with keys, of which those that manage have the scope admin (--api-key-file), or "
       "with --manage on (WEIR_MANAGE=on)."}));
}

}  // namespace

Entrance::Entrance(EntranceConfig config, CorsPolicy cors)
    : config_(config), cors_(std::move(cors)) {}

std::optional<Entrance::Refusal> Entrance::refusal(const net::HttpRequest& request, Access access,
                                                   const Key* key, bool has_keys) const {
  if (has_keys && access != Access::kOpen) {
    if (key == nullptr) return Refusal{unauthorised(), {kChallenge}};
    if (!key->may_use(access)) return Refusal{out_of_scope(request, access, *key)};
  }
  if (access != Access::kAdmin) return std::nullopt;
  if (auto error = management_refusal(request, has_keys)) return Refusal{std::move(*error)};
  return std::nullopt;
}

std::optional<Error> Entrance::management_refusal(const net::HttpRequest& request,
                                                  bool has_keys) const {
  if (auto error = closed(request, has_keys)) return error;
  if (is_of_foreign_page(request, cors_))
    return forbidden(
        foreign_page_refusal(request, "Pages of other sites may not manage this server: found "));
  if ((request.method == "POST" || has_body(request)) && !says_json(request))
    return wrong_media_type(request);
  return std::nullopt;
}

std::optional<Error> Entrance::closed(const net::HttpRequest& request, bool has_keys) const {
  if (config_.manage == Manage::kOff)
    return forbidden("This server cannot be managed: it was started with --manage off.");
  if (has_keys || config_.manage == Manage::kOn) return std::nullopt;
  if (config_.is_public) return closed_because("other machines reach it (--host)");
  if (cors_.allows_any()) return closed_because("pages of all sites may call it (--cors '*')");
  if (config_.any_host) return closed_because("it answers under any name (--allowed-hosts '*')");
  if (is_forwarded(request)) return closed_because("a proxy passes requests on to it");
  return std::nullopt;
}

}  // namespace weir::api
