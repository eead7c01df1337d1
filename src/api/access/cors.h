// CorsPolicy: which web pages may read our answers (decision 16: none unless told).
//
// Threads: immutable after construction.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"

namespace weir::api {

class CorsPolicy {
 public:
  // Origins as browsers send them ("https://chat.example"); "*" allows any.
  explicit CorsPolicy(std::vector<std::string> origins);

  // The headers that every answer to this request has: they let its origin read the answer, if it
  // may. To be called once an answer: browsers refuse one that names its origin twice.
  void add_headers(const net::HttpRequest& request, net::HttpResponder::Headers& headers) const;

  // What the answer to a preflight request has beside them; nullopt if this is none.
  std::optional<net::HttpResponder::Headers> preflight(const net::HttpRequest& request) const;

  bool allows(std::string_view origin) const;
  bool allows_any() const { return any_; }

 private:
  std::vector<std::string> origins_;
  bool any_ = false;
};

// True for an origin as a browser spells it: scheme, host and port, in lower case, no default port.
bool is_origin(std::string_view text);

}  // namespace weir::api
