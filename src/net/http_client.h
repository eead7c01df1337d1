// HttpClient: one keep-alive connection of a client, one request at a time. For weir-load and
// tests: no redirects, no proxy.
//
// Threads: the loop's.
//
// Invariants:
// (1) Between request() and its on_end or on_error no other request may be begun; exactly one of
// the two
//     is called, never from within a function of this class, and not after close().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/loop.h"
#include "net/tls.h"

namespace weir::net {

// Where to connect; a name is looked up once.
class HttpTarget {
 public:
  // `host` is an address or a name; of several addresses of a name each is tried, in their order.
  static Result<HttpTarget> tcp(const std::string& host, uint16_t port);
  static Result<HttpTarget> unix_socket(const std::string& path);
  // Speaks TLS with a server that `trust` believes to be `host`.
  void use_tls(std::shared_ptr<TlsTrust> trust, std::string host);

 private:
  friend class HttpClient;
  std::vector<std::string> addresses_;  // The bytes of a sockaddr each; a unix socket's path.
  bool is_unix_ = false;
  std::shared_ptr<TlsTrust> trust_;  // Null: no TLS.
  std::string host_;
};

class HttpClient {
 public:
  struct Callbacks {
    std::function<void(int status, std::string_view content_type)> on_head;
    std::function<void(std::string_view bytes)> on_body;  // Without the framing.
    std::function<void()> on_end;
    std::function<void(const std::string& message)> on_error;  // The connection is closed.
  };

  // Connects at the first request.
  HttpClient(Loop& loop, const HttpTarget& target, Callbacks callbacks);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Connects without a request, TLS included; on_end tells that it is done.
  void connect();
  // Sends the whole bytes of a request; connects first if there is no connection. If the server has
  // closed an idle connection in the meantime, the request is sent once more over a new one.
  void request(std::string bytes, bool is_head = false);
  // Breaks off whatever is going on; nothing is called any more for it.
  void close();

  bool is_open() const;
  // How many connections were made.
  uint64_t connections() const;

  struct Impl;

 private:
  Impl* impl_;
};

}  // namespace weir::net
