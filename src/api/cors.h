// CorsPolicy: which web pages may read our answers (decisions 19: none unless told).
//
// Threads: immutable after construction.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/http.h"

namespace weir::api {

class CorsPolicy {
 public:
  // Origins as browsers send them ("https://chat.example"); "*" allows any.
  explicit CorsPolicy(std::vector<std::string> origins);

  // The headers that let the request's origin read the answer; none if it may not.
  void add_headers(const net::HttpRequest& request, net::HttpResponder::Headers& headers) const;

  // The headers of the answer to a preflight request; nullopt if this is none.
  std::optional<net::HttpResponder::Headers> preflight(const net::HttpRequest& request) const;

 private:
  bool allows(std::string_view origin) const;

  std::vector<std::string> origins_;
  bool any_ = false;
};

}  // namespace weir::api
