// Routes: method and path to a handler. Knows nothing of JSON: what to say for an unknown path or a
// wrong method is the application's.
//
// Threads: filled before the server starts, then read on the loop's thread.
//
// Patterns are paths whose segments are literal or `{name}`, which takes one segment; a `{name}` at
// the end takes the rest of the path with its slashes: `/v1/models/{id}` matches
// `/v1/models/org/name` and
// `/v1/models/org%2Fname` with the same id. A path may match several patterns: the one whose first
// differing segment is literal wins, whatever the order of add().
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/http.h"

namespace weir::net {

// %XX to bytes; false for a bad escape or a NUL. `+` stays.
bool percent_decode(std::string_view text, std::string& out);

class RouteParams {
 public:
  void add(std::string name, std::string value) {
    values_.emplace_back(std::move(name), std::move(value));
  }
  // The decoded value. REQUIRES: the pattern has that name.
  const std::string& operator[](std::string_view name) const;

 private:
  std::vector<std::pair<std::string, std::string>> values_;
};

class Routes {
 public:
  using Handler = std::function<void(HttpRequest&&, const RouteParams&, HttpResponderPtr)>;
  // Answers what no route answers: 400 (bad percent-encoding), 404, 405. `allow` is the value of
  // the Allow header, which a 405 must have; empty for the others.
  using Missing =
      std::function<void(int status, std::string allow, HttpRequest&&, HttpResponderPtr)>;

  struct Match {
    int status = 404;  // 200, 400, 404 or 405; 204 for OPTIONS on a known path.
    std::string allow{};
    const Handler* handler = nullptr;
    size_t number = 0;  // Of the handler, as add() gave it.
    RouteParams params{};
  };

  // Returns the handler's number: how many were added before.
  // REQUIRES: `pattern` begins with '/', and method and pattern were not added before.
  size_t add(std::string_view method, std::string_view pattern, Handler handler);

  // HEAD finds GET's handler where it has none of its own.
  Match match(std::string_view method, std::string_view path) const;

  // match(), and the answer: by the handler, 204 with Allow for OPTIONS, else by `missing`.
  void dispatch(HttpRequest&& request, HttpResponderPtr responder, const Missing& missing) const;

 private:
  struct Segment {
    std::string text;  // Literal, or the parameter's name.
    bool is_param = false;
    auto operator<=>(const Segment&) const = default;
  };
  struct Method {
    std::string name;
    Handler handler;
    size_t number = 0;
  };
  struct Route {
    std::vector<Segment> segments;
    std::vector<Method> methods;
    std::string allow;
  };

  static bool matches(const Route& route, const std::vector<std::string_view>& parts);
  const Route* find(const std::vector<std::string_view>& parts) const;

  std::vector<Route> routes_;  // More specific patterns first.
  size_t count_ = 0;           // Of handlers.
};

}  // namespace weir::net
