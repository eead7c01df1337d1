// Url: an address of http or https, taken apart by libcurl's own parser: what is checked of it is
// what is asked for.
//
// Threads: any; a value.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::hub {

struct Url {
  std::string text;    // Whole, normalised.
  std::string scheme;  // "http", "https".
  std::string host;    // As it is written: a name, an IPv4 address, an IPv6 address in brackets.
  int port = 0;

  // Neither a user nor a password may be in it. Errors do not repeat what follows a '?'.
  static Result<Url> parse(const std::string& text);
  // What `location`, whole or relative, means to an answer of this address.
  Result<Url> join(const std::string& location) const;

  bool same_origin(const Url& other) const {
    return scheme == other.scheme && host == other.host && port == other.port;
  }
};

// For a part of a path or query: all but [A-Za-z0-9._~-] as %XX; slashes stay with `keep_slashes`.
std::string percent_encode(std::string_view text, bool keep_slashes = false);

}  // namespace weir::hub
