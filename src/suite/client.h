// Endpoint and ask(): requests to an OpenAI-compatible server, several at once, and their answers
// as values, with times. Load is not made by this but by src/load.
//
// Threads: the caller's, which waits.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "load/load_options.h"
#include "net/http_client.h"

namespace weir::suite {

struct Request {
  std::string path;  // "/v1/completions"
  std::string body;  // JSON; empty: a GET.
};

struct Answer {
  int status = 0;       // 0: there was none, `error` says why.
  std::string error{};  // A status other than 200 is also one.
  std::string body{};   // Of an answer that is no stream.
  // Of a stream: each event's data and when it came, in seconds from the request; [DONE] left out.
  std::vector<std::pair<double, std::string>> events{};
  double seconds = 0;  // Until its end.
};

// Where a server is, and how it is asked.
class Endpoint {
 public:
  // "http://127.0.0.1:5413"; https with certificates that the system trusts. Of several keys the
  // first is sent; empty: none.
  static Result<Endpoint> at(const std::string& url, const std::string& api_keys);

  // As many at the same time as `at_once`; the answers in the order of the requests.
  std::vector<Answer> ask(std::span<const Request> requests, int32_t at_once) const;
  Answer ask(const Request& request) const;
  // The same as JSON; another status than 200 is an error, which says what was asked.
  Result<JsonDoc> ask_json(const Request& request) const;

  // A figure of its /metrics; 0: it has none of that name.
  double metric(std::string_view name) const;

  const net::HttpTarget& target() const { return target_; }
  const std::string& url() const { return url_; }
  // Host, port, key and the like, for load.
  const load::LoadOptions& load_options() const { return options_; }

 private:
  Endpoint(std::string url, load::LoadOptions options, net::HttpTarget target)
      : url_(std::move(url)), options_(std::move(options)), target_(std::move(target)) {}

  std::string url_;
  load::LoadOptions options_;
  net::HttpTarget target_;
};

}  // namespace weir::suite
