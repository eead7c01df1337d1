// A server on its own thread, and a client of raw sockets: no HTTP library checks another.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "net/http.h"
#include "net/loop.h"
#include "net/timer_wheel.h"

namespace weir::net {

using namespace std::chrono_literals;

inline int64_t elapsed_ms(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() -
                                                               since)
      .count();
}

// Runs `call` on the loop's thread and waits for what it returns.
template <class F>
auto run_on_loop(Loop& loop, F call) {
  std::promise<decltype(call())> promise;
  loop.post([&] {
    if constexpr (std::is_void_v<decltype(call())>) {
      call();
      promise.set_value();
    } else {
      promise.set_value(call());
    }
  });
  return promise.get_future().get();
}

// One connection. Every wait ends after 5 s, so a broken server fails a test rather than hangs it.
class RawClient {
 public:
  // `source`: of IPv4; the whole network 127.0.0.0/8 is this machine.
  explicit RawClient(uint16_t port, const char* address = "127.0.0.1", int receive_buffer = 0,
                     const char* source = nullptr) {
    const bool v6 = std::strchr(address, ':') != nullptr;
    fd_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer > 0)
      ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    int result = -1;
    if (v6) {
      sockaddr_in6 to{};
      to.sin6_family = AF_INET6;
      to.sin6_port = htons(port);
      ::inet_pton(AF_INET6, address, &to.sin6_addr);
      result = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to);
    } else {
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(port);
      if (source != nullptr) {
        sockaddr_in from{};
        from.sin_family = AF_INET;
        ::inet_pton(AF_INET, source, &from.sin_addr);
        ::bind(fd_, reinterpret_cast<sockaddr*>(&from), sizeof from);
      }
      ::inet_pton(AF_INET, address, &to.sin_addr);
      result = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to);
    }
    connected_ = result == 0;
    const int one = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }

  explicit RawClient(const std::string& unix_path) {
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    std::strncpy(to.sun_path, unix_path.c_str(), sizeof to.sun_path - 1);
    connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }

  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }

  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  // Unread and unsent bytes are thrown away, the peer sees ECONNRESET.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close();
  }
  void shut_down_sending() { ::shutdown(fd_, SHUT_WR); }

  // False if the server has closed meanwhile.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

  // Waits until the server's kernel has all that was sent.
  bool has_arrived() const {
    for (int i = 0; i < 5'000; ++i) {
      int waiting = 0;
      if (::ioctl(fd_, SIOCOUTQ, &waiting) != 0 || waiting == 0) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  }

  // Reads until the text read so far ends with `ending`; returns and forgets it.
  std::string read_until(std::string_view ending, int timeout_ms = 5'000) {
    while (!buffer_.ends_with(ending))
      if (!read_some(timeout_ms)) {
        ADD_FAILURE() << "no \"" << ending << "\" at the end of: " << buffer_;
        break;
      }
    return std::exchange(buffer_, {});
  }

  // Reads until the server closes; `reset` tells that it did so rudely.
  std::string read_to_end(bool* reset = nullptr, int timeout_ms = 5'000) {
    while (read_some(timeout_ms)) {
    }
    if (!ended_) ADD_FAILURE() << "the server did not close; it sent: " << buffer_;
    if (reset != nullptr) *reset = reset_;
    return std::exchange(buffer_, {});
  }

  // One whole response: its head, and its body by Content-Length or chunks (decoded).
  struct Response {
    int status = 0;
    std::string head, body;
    std::string header(std::string name) const {
      const size_t at = head.find("\r\n" + name + ": ");
      if (at == std::string::npos) return {};
      const size_t begin = at + name.size() + 4;
      return head.substr(begin, head.find("\r\n", begin) - begin);
    }
  };
  Response read_response(bool has_body = true) {
    Response r;
    if (!need("\r\n\r\n")) return r;
    const size_t end = buffer_.find("\r\n\r\n") + 4;
    r.head = buffer_.substr(0, end);
    buffer_.erase(0, end);
    if (r.head.size() < 12 || !r.head.starts_with("HTTP/1.1 ")) {
      ADD_FAILURE() << "not a status line: " << r.head;
      return r;
    }
    r.status = std::stoi(r.head.substr(9, 3));
    if (!has_body || r.status < 200 || r.status == 204) return r;
    if (!r.header("Content-Length").empty()) {
      r.body = take(std::stoul(r.header("Content-Length")));
    } else if (r.header("Transfer-Encoding") == "chunked") {
      while (true) {
        if (!need("\r\n")) return r;
        const size_t line = buffer_.find("\r\n");
        const size_t size = std::stoul(buffer_.substr(0, line), nullptr, 16);
        buffer_.erase(0, line + 2);
        r.body += take(size);
        EXPECT_EQ(take(2), "\r\n");
        if (size == 0) break;
      }
    }
    return r;
  }

  // The server closes (or has closed) within the time, without sending anything.
  bool is_closed_silently(int timeout_ms = 5'000) {
    while (read_some(timeout_ms)) {
    }
    return ended_ && buffer_.empty();
  }
  // Nothing comes for this long, and the connection stays.
  bool is_quiet(int for_ms) { return !read_some(for_ms) && !ended_; }
  size_t buffered() const { return buffer_.size(); }

  bool read_some(int timeout_ms = 5'000) {
    if (ended_) return false;
    pollfd state{fd_, POLLIN, 0};
    if (::poll(&state, 1, timeout_ms) <= 0) return false;
    char bytes[16 << 10];
    const ssize_t count = ::recv(fd_, bytes, sizeof bytes, 0);
    if (count <= 0) {
      ended_ = true;
      reset_ = count < 0;
      return false;
    }
    buffer_.append(bytes, static_cast<size_t>(count));
    return true;
  }

 private:
  bool need(std::string_view text) {
    while (buffer_.find(text) == std::string::npos)
      if (!read_some()) {
        ADD_FAILURE() << "no \"" << text << "\" in: " << buffer_;
        return false;
      }
    return true;
  }
  std::string take(size_t count) {
    while (buffer_.size() < count && read_some()) {
    }
    EXPECT_GE(buffer_.size(), count);
    std::string taken = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return taken;
  }

  int fd_ = -1;
  bool connected_ = false;
  bool ended_ = false;
  bool reset_ = false;
  std::string buffer_;
};

inline std::string get(const std::string& path, const std::string& headers = {}) {
  return "GET " + path + " HTTP/1.1\r\nHost: test\r\n" + headers + "\r\n";
}

inline std::string post(const std::string& path, const std::string& body,
                        const std::string& headers = {}) {
  return "POST " + path + " HTTP/1.1\r\nHost: test\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// The server under test. Its handler: /echo answers with method, path, query and body; /hold keeps
// the responder in `held`; /stream opens a stream and keeps it; anything else is 404.
class TestServer {
 public:
  explicit TestServer(HttpLimits limits = {}, const std::string& host = "127.0.0.1",
                      const std::string& unix_path = {}, Loop::Clock clock = Loop::Clock::kSystem)
      : loop(clock),
        server(
            loop, limits,
            [this](HttpRequest request, HttpResponderPtr responder) {
              handle(std::move(request), std::move(responder));
            },
            [](int status, std::string_view message, const HttpRequest&) {
              return std::pair<std::string, std::string>(
                  "application/json", "{\"status\":" + std::to_string(status) + ",\"message\":\"" +
                                          std::string(message) + "\"}");
            }) {
    const Result<void> listening =
        unix_path.empty() ? server.listen_tcp(host, 0) : server.listen_unix(unix_path);
    if (!listening) ADD_FAILURE() << listening.error().message;
  }

  // `prepare` may set hooks before the loop's thread begins.
  void start() {
    thread_ = std::thread([this] { loop.run(); });
  }

  ~TestServer() {
    loop.stop();
    if (thread_.joinable()) thread_.join();
    held.clear();
  }

  uint16_t port() const { return server.port(); }

  // Runs `call` on the loop's thread and waits for it.
  template <class F>
  auto on_loop(F call) {
    return run_on_loop(loop, std::move(call));
  }

  // Waits until `condition`, which is asked on the loop's thread, holds.
  template <class F>
  bool eventually(F condition, int timeout_ms = 5'000) {
    const auto begin = std::chrono::steady_clock::now();
    while (!on_loop(condition)) {
      if (elapsed_ms(begin) > timeout_ms) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }

  // Waits until the loop has done what has come: it accepts, reads and answers in turns of its own.
  void settle() {
    for (int turn = 0; turn < 10; ++turn) on_loop([] {});
  }
  // Waits until the loop has read what this client has sent.
  void take_in(const RawClient& client) {
    EXPECT_TRUE(client.has_arrived());
    settle();
  }
  // Moves the clock on. REQUIRES: a clock by hand.
  void advance(uint64_t ms) {
    loop.advance_clock(ms);
    settle();
  }

  Loop loop;
  HttpServer server;
  // Of the loop's thread:
  std::vector<HttpResponderPtr> held;
  std::vector<HttpRequest> seen;
  int closed_calls = 0;

 private:
  void handle(HttpRequest request, HttpResponderPtr responder) {
    if (request.path == "/echo") {
      responder->respond(
          200, {{"Content-Type", "text/plain"}},
          request.method + " " + request.path + " " + request.query + "|" + request.body);
    } else if (request.path == "/hold" || request.path == "/stream") {
      responder->on_closed([this] { ++closed_calls; });
      if (request.path == "/stream")
        responder->start_stream(200, {{"Content-Type", "text/event-stream"}});
      held.push_back(std::move(responder));
    } else {
      responder->respond(404, {}, "no");
    }
    seen.push_back(std::move(request));
  }

  std::thread thread_;
};

// The same with a clock that the test moves (TestServer::advance): what the limits say about time
// is then exact to a tick, however busy the machine is.
class TimedServer : public TestServer {
 public:
  explicit TimedServer(const HttpLimits& limits = {})
      : TestServer(limits, "127.0.0.1", {}, Loop::Clock::kByHand) {}

  // A deadline is met at most so late.
  static constexpr uint64_t kTickMs = TimerWheel::kTickMs;
};

}  // namespace weir::net
