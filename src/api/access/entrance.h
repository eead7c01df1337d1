// Entrance: whether a request may use an endpoint, as far as its head tells, which is before its
// body is read: by its key's scope, and of management (Access::kAdmin) more is asked. That changes
// the server for everybody or has it ask other machines, and no web page may do so through a
// visitor's browser:
// - Without keys management is there only if this machine's users alone can ask.
// - Pages of other sites are refused whatever their method, with a key too, but for those that
//   --cors lets.
// - A body is JSON and says so, and every POST does, also without a body: a page cannot send that
//   header to another site before the site has agreed (a preflight).
// The name in Host is the guard's (access/guard.h), whom each request meets first.
//
// Threads: immutable after construction.
#pragma once

#include <optional>

#include "api/access/cors.h"
#include "api/access/keys.h"
#include "api/access/manage.h"
#include "api/reference/endpoint_table.h"
#include "base/result.h"
#include "net/http.h"

namespace weir::api {

struct EntranceConfig {
  Manage manage = Manage::kAuto;
  bool is_public = false;  // Other machines reach the server: some listener is not of loopback.
  bool any_host = false;   // It answers under any name (--allowed-hosts '*').
};

class Entrance {
 public:
  Entrance(EntranceConfig config, CorsPolicy cors);

  struct Refusal {
    Error error;
    net::HttpResponder::Headers headers{};
  };
  // Looks at the method and the headers. `key`: the one of this server's that the request came
  // with; null: it came with none. `has_keys`: the server asks for one.
  std::optional<Refusal> refusal(const net::HttpRequest& request, Access access, const Key* key,
                                 bool has_keys) const;

 private:
  std::optional<Error> management_refusal(const net::HttpRequest& request, bool has_keys) const;
  std::optional<Error> closed(const net::HttpRequest& request, bool has_keys) const;

  const EntranceConfig config_;
  const CorsPolicy cors_;
};

}  // namespace weir::api
