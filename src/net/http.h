// HTTP as the application sees it: HttpRequest, HttpResponder and HttpServer. Bytes, sockets,
// limits and timeouts are this folder's business; JSON and models are not.
//
// Threads: everything here lives on the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "base/result.h"
#include "net/loop.h"
#include "net/peer.h"
#include "net/stream_buffer.h"

namespace weir::net {

struct HttpRequest {
  std::string method;  // Upper case.
  std::string path;    // Percent-encoded as received, without the query.
  std::string query;   // Without '?'.
  std::vector<std::pair<std::string, std::string>> headers;  // Names in lower case, in order.
  std::string body;
  bool without_body = false;  // What it had was not kept (HttpServer::wants_body()).
  std::string peer;           // "127.0.0.1:50412", "unix".
  PeerId peer_id = 0;         // Of its address.
  uint64_t id = 0;            // Counts requests of this process.

  // The first header of that name (lower case), or an empty view.
  std::string_view header(std::string_view name) const;
};

// Answers one request: one response, or one stream of events. Lives until the answer is complete or
// the client is gone; holding it (shared) after that is safe, every call is then ignored.
class HttpResponder {
 public:
  virtual ~HttpResponder() = default;

  using Headers = std::vector<std::pair<std::string, std::string>>;

  // The whole response. Content-Length, Date and Connection are added here; a HEAD request gets no
  // body. REQUIRES: nothing was sent yet.
  virtual void respond(int status, const Headers& headers, std::string_view body) = 0;

  // A chunked response. REQUIRES: nothing was sent yet.
  virtual void start_stream(int status, const Headers& headers) = 0;
  // Writes `bytes` (one or more whole events) at once. Never blocks: what the socket does not take
  // is kept, see queued_bytes(). REQUIRES: start_stream().
  virtual void write(std::string_view bytes) = 0;
  // Writes without a copy, for what is written often; clears `buffer`.
  virtual void write(StreamBuffer& buffer) = 0;
  // Ends the stream; the connection is kept if the client allows.
  virtual void end_stream() = 0;

  // Bytes that the client has not taken yet. A stream should stop producing beyond
  // HttpLimits::stream_pause_bytes, and is closed beyond stream_queue_bytes_max.
  virtual size_t queued_bytes() const = 0;
  // Calls once when queued_bytes() has fallen to zero again; soon, if it is zero now. The call
  // comes from the loop, never from within a function of this class.
  virtual void on_drained(std::function<void()> call) = 0;
  // Calls once if the client leaves before the answer is complete (also when the server closes a
  // client that does not read). The call comes from the loop, never from within a function of this
  // class: write() may find the client gone, and closed() is then true at once. A client that only
  // closes its sending side (FIN) has left, too.
  virtual void on_closed(std::function<void()> call) = 0;
  // The client has left before the answer was complete.
  virtual bool closed() const = 0;
  // A hint that write() comes soon.
  virtual void prefetch() const = 0;
};

using HttpResponderPtr = std::shared_ptr<HttpResponder>;

struct HttpLimits {
  // Beyond, the one that has waited longest is closed for another; 503 if every one is answered.
  int32_t connections_max = 16384;
  size_t header_bytes_max = 64 << 10;  // Request line and headers: 431 beyond.
  size_t body_bytes_max = 32 << 20;    // 413 beyond, from Content-Length where it is given.
  // What the connections hold together, shared fairly by peers. Heads of requests, from their first
  // byte to the end of the answer, and what is pipelined after them: 503 beyond.
  size_t heads_bytes_max = 64 << 20;
  // Bodies that are being received, and those of up to small_body_bytes beside them: 503 beyond.
  size_t arriving_bytes_max = 256 << 20;
  size_t small_bodies_bytes_max = 16 << 20;
  size_t small_body_bytes = 64 << 10;
  // Answers that clients have not taken yet: closed beyond, but one at a time may be larger.
  size_t answers_bytes_max = 256 << 20;
  uint64_t header_timeout_ms = 10'000;     // From first byte to end of headers: 408.
  uint64_t handshake_timeout_ms = 10'000;  // From the connection to the end of TLS's: closed.
  uint64_t body_timeout_ms = 30'000;       // Without a byte of the body: 408.
  // A body that is late by body_timeout_ms against this rate: 408. Slower than any line on which
  // images are sent; a body of 32 MiB may still take half an hour.
  uint64_t body_bytes_per_s_min = 16 << 10;
  // Where there is no room for another, a body is given up that is late against this rate by
  // body_grace_ms.
  uint64_t body_bytes_per_s_brisk = 1 << 20;
  uint64_t body_grace_ms = 5'000;
  uint64_t idle_timeout_ms = 120'000;  // Keep-alive without a request: closed silently.
  uint64_t write_timeout_ms = 60'000;  // Without the client taking a byte: closed.
  // So is a client that is late by write_timeout_ms against this rate. A byte now and then must not
  // keep an answer; the slowest mobile line takes several times as much.
  uint64_t answer_bytes_per_s_min = 1 << 10;
  // After an answer that ends the connection: how long the client may take to read it and to close.
  uint64_t linger_timeout_ms = 5'000;
  size_t stream_pause_bytes = 64 << 10;
  size_t stream_queue_bytes_max = 4 << 20;
};

// Counters for /metrics.
struct HttpStats {
  Counter connections;
  Counter requests;
  Counter refused_connections;
  Counter malformed;
  Counter refused_heads;   // Beyond heads_bytes_max.
  Counter refused_bodies;  // Beyond arriving_bytes_max.
  // Given up for others: idle connections, and requests that came too slowly.
  Counter yielded_idle, yielded_heads, yielded_bodies;
  Counter slow_readers;     // Answers that were taken too slowly, or not at all.
  Counter refused_answers;  // Beyond answers_bytes_max.
  Counter tls_failures;     // Handshakes or records that were broken.
  Gauge open_connections;
  Gauge connections_max, body_bytes_max;  // Of HttpLimits.
};

class TlsContext;

class HttpServer {
 public:
  using Handler = std::function<void(HttpRequest&&, HttpResponderPtr)>;
  // Builds the body of an error that this folder answers itself (400, 408, 413, 417, 431, 501, 503,
  // 505): content type and body. `request` is what is known of it, perhaps nothing yet; its path,
  // from the end of the request line on.
  using ErrorBody = std::function<std::pair<std::string, std::string>(
      int status, std::string_view message, const HttpRequest& request)>;
  // Headers to add to such an answer (CORS, Retry-After).
  using ErrorHeaders =
      std::function<HttpResponder::Headers(int status, const HttpRequest& request)>;
  // Looks at a request that has a body before that is read: false if the answer does not need it
  // (404, 405, 401 ...). The handler then gets the request without its body.
  using WantsBody = std::function<bool(const HttpRequest& request)>;

  // `handler` is called on the loop, once per request, when its body is complete.
  HttpServer(Loop& loop, const HttpLimits& limits, Handler handler, ErrorBody error_body);
  // Closes everything at once. On the loop's thread, or when the loop does not run; before ~Loop.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // `host`: an IPv4 or IPv6 address, or a name of this machine. Port 0 takes a free one. The error
  // names the address and the likely remedy.
  Result<void> listen_tcp(const std::string& host, uint16_t port);
  Result<void> listen_unix(const std::string& path);
  // Takes a stream socket that listens already, of TCP or of Unix, and closes it with the others.
  // Connections wait in it until accept_passed().
  Result<void> listen_passed(int fd);
  void accept_passed();
  // Of the first TCP listener; without one 0, and empty.
  uint16_t port() const;
  const std::string& address() const;
  // A TCP listener can be reached from other machines: its address is no loopback address.
  bool is_public() const;

  // TCP connections from now on speak TLS; Unix sockets do not. Before listen_tcp().
  void use_tls(std::shared_ptr<TlsContext> context);

  // Stops listening, closes idle connections, marks the rest to close after their answer; `done` is
  // called when the last has gone.
  void drain(std::function<void()> done);

  // For a drain that has lasted long enough: closes the connections whose request is not complete.
  void close_unfinished_requests();

  const HttpStats& stats() const;

  // Optional. A body that is not wanted is never stored; if it is short it is read and thrown away,
  // so that the connection can be kept, else the connection ends with the answer.
  void wants_body(WantsBody call);
  // Optional.
  void error_headers(ErrorHeaders call);

 private:
  struct Impl;
  Impl* impl_;  // Frees itself when its last handle is closed, which may be later.
};

}  // namespace weir::net
