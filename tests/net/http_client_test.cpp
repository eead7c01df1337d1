// HttpClient against our own server, and against raw answers.
#include "net/http_client.h"

#include <gtest/gtest.h>

#include "test_server.h"

namespace weir::net {
namespace {

// A client on its own loop in this thread; says what happened as text.
class Caller {
 public:
  explicit Caller(uint16_t port)
      : target_(*HttpTarget::tcp("127.0.0.1", port)),
        client(loop, target_,
               {.on_head =
                    [this](int status, std::string_view type) {
                      said += std::to_string(status) + " " + std::string(type) + "|";
                    },
                .on_body = [this](std::string_view bytes) { said += bytes; },
                .on_end = [this] { end("|end"); },
                .on_error = [this](const std::string& message) { end("|error: " + message); }}) {}

  // Sends each and returns what was said of all of them.
  std::string run(std::vector<std::string> requests) {
    pending_ = std::move(requests);
    loop.post([this] { next(); });
    loop.run();
    return said;
  }

  Loop loop;

 private:
  void next() {
    if (pending_.empty()) return loop.stop();
    const std::string request = pending_.front();
    pending_.erase(pending_.begin());
    client.request(request, request.starts_with("HEAD"));
  }
  void end(const std::string& what) {
    said += what + "\n";
    next();
  }

  const HttpTarget target_;
  std::vector<std::string> pending_;

 public:
  HttpClient client;
  std::string said;
};

// Answers each connection once with fixed bytes, then closes it.
class RawServer {
 public:
  explicit RawServer(std::vector<std::string> answers) : answers_(std::move(answers)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), length), 0);
    ::listen(listener_, 8);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (const std::string& answer : answers_) {
        const int fd = ::accept(listener_, nullptr, nullptr);
        char bytes[4096];
        (void)!::recv(fd, bytes, sizeof bytes, 0);
        (void)!::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
        ::shutdown(fd, SHUT_WR);
        while (::recv(fd, bytes, sizeof bytes, 0) > 0) {
        }
        ::close(fd);
      }
    });
  }
  ~RawServer() {
    thread_.join();
    ::close(listener_);
  }
  uint16_t port = 0;

 private:
  std::vector<std::string> answers_;
  int listener_ = -1;
  std::thread thread_;
};

TEST(HttpClient, ReusesItsConnection) {
  TestServer server;
  server.start();
  Caller caller(server.port());
  EXPECT_EQ(caller.run({get("/echo"), "HEAD /echo HTTP/1.1\r\nHost: x\r\n\r\n", post("/echo", "b"),
                        get("/none")}),
            "200 text/plain|GET /echo ||end\n200 text/plain||end\n"
            "200 text/plain|POST /echo |b|end\n404 |no|end\n");
  EXPECT_EQ(caller.client.connections(), 1u);
}

TEST(HttpClient, RepeatsARequestThatMetAClosedIdleConnection) {
  RawServer server({"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",  // Says keep, but closes.
                    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb"});
  Caller caller(server.port);
  EXPECT_EQ(caller.run({get("/"), get("/")}), "200 |a|end\n200 |b|end\n");
  EXPECT_EQ(caller.client.connections(), 2u);
}

TEST(HttpClient, ReadsABodyThatEndsWithTheConnectionAndPassesOver100) {
  RawServer server({"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\nbody",
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "3\r\nabc\r\n0\r\n\r\n"});
  Caller caller(server.port);
  EXPECT_EQ(caller.run({get("/"), get("/")}), "200 a/b|body|end\n200 |abc|end\n");
}

TEST(HttpClient, SaysWhatWentWrong) {
  RawServer server({"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort", "garbage\r\n\r\n", "",
                    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab"});
  Caller caller(server.port);
  EXPECT_EQ(caller.run({get("/"), get("/"), get("/"), get("/")}),
            "200 |short|error: the server closed the connection\n"
            "|error: malformed response: Expected HTTP/\n"
            "|error: the server closed the connection\n"
            "200 |a|error: the server sent bytes after its response\n");
}

TEST(HttpClient, SaysThatNobodyListens) {
  uint16_t port = 0;
  {
    TestServer server;
    port = server.port();
  }
  Caller caller(port);
  EXPECT_EQ(caller.run({get("/")}), "|error: cannot connect: connection refused\n");
  EXPECT_FALSE(HttpTarget::tcp("no-such-host.invalid", 1));
  EXPECT_FALSE(HttpTarget::unix_socket(""));
}

TEST(HttpClient, MayCloseWithinACallbackAndGoOn) {
  TestServer server;
  server.start();
  Loop loop;
  std::string said;
  HttpClient* self = nullptr;
  HttpClient client(loop, *HttpTarget::tcp("127.0.0.1", server.port()),
                    {.on_head = [](int, std::string_view) {},
                     .on_body =
                         [&](std::string_view bytes) {
                           said += bytes;
                           if (said == "data: 1\n\n") {
                             self->close();
                             self->request(get("/echo"));
                           }
                         },
                     .on_end =
                         [&] {
                           said += "|end";
                           loop.stop();
                         },
                     .on_error =
                         [&](const std::string& message) {
                           said += message;
                           loop.stop();
                         }});
  self = &client;
  loop.post([&] { client.request(get("/stream")); });
  std::thread writer([&] {
    ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
    server.on_loop([&] { server.held[0]->write("data: 1\n\n"); });
  });
  loop.run();
  writer.join();
  EXPECT_EQ(said, "data: 1\n\nGET /echo ||end");
  EXPECT_TRUE(server.eventually([&] { return server.closed_calls == 1; }));
}

}  // namespace
}  // namespace weir::net
