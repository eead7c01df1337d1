// Guard: what keeps web pages away from a server that asks for no key. A page in a browser can send
// requests to everything that the browser's machine reaches, also to loopback addresses:
// - under a name of its own that has been made to lead here (DNS rebinding): then `Host` is that
//   name, and the page may read the answers. So `Host` must be a name of this server.
// - as requests to another site, whose answers it cannot read, but which are computed: those that
//   change or cost something must not have another site's `Origin` or `Sec-Fetch-Site`.
// Browsers write these headers themselves, and no page can change them; programs are not asked for
// them. With keys all this is left to the key, which such a page does not have. Of requests that
// manage the server more is asked, once it is known that they do (access/entrance.h).
//
// Threads: the loop's. It does not change, but for having said things once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/access/cors.h"
#include "net/http.h"

namespace weir::api {

struct GuardConfig {
  // Names that clients call the server by, in any case, without a port; "*.NAME": all below NAME;
  // "*": any.
  std::vector<std::string> allowed_hosts{};
  std::vector<std::string> own_names{};  // Of this machine and of what it listens on; the same.
  // All TCP connections speak TLS. A page whose name was made to lead here has no certificate from
  // us: its browser does not get as far as a request, whatever the name.
  bool tls = false;
};

class Guard {
 public:
  Guard(GuardConfig config, CorsPolicy cors);

  // Why the request is refused, with the option that would allow it; nullopt: it may pass. Looks at
  // method, headers and peer_id. The first of each kind is logged, also where a key lets it pass.
  std::optional<std::string> refusal(const net::HttpRequest& request, bool has_keys) const;

 private:
  bool knows_host(std::string_view host) const;
  void say_once(bool& said, const std::string& what, bool has_keys) const;

  const GuardConfig config_;
  const CorsPolicy cors_;
  mutable bool said_host_ = false, said_origin_ = false;
};

// The names by which this machine may be called: `listen_host` (an address is fine), its host name
// whole, without its domain, and as multicast DNS has it (NAME.local).
std::vector<std::string> own_names(const std::string& listen_host);

// True if, by what the browser says, a page of another site asks that `cors` does not let.
bool is_of_foreign_page(const net::HttpRequest& request, const CorsPolicy& cors);

// What to answer to that: `begin`, what was found, and the option that would allow it.
std::string foreign_page_refusal(const net::HttpRequest& request, std::string_view begin);

// True for a name without a port, for "*.NAME" and for "*".
bool is_host_pattern(std::string_view text);

}  // namespace weir::api
