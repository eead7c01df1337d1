// HttpServer over real sockets: requests and answers, byte-exact where it matters.
#include <gtest/gtest.h>
#include <netdb.h>

#include <cmath>
#include <ctime>

#include "test_server.h"

namespace weir::net {
namespace {

TEST(HttpServer, AnswersAGetByteExactly) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send("GET /echo?a=1&b=%20 HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string answer = client.read_until("GET /echo a=1&b=%20|");
  // "Sat, 21 Nov 2026 12:34:56 GMT" has 29 characters.
  const size_t date = answer.find("Date: ") + 6;
  ASSERT_LT(date + 29, answer.size()) << answer;
  tm parts{};
  const char* end = ::strptime(answer.c_str() + date, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  ASSERT_EQ(end, answer.c_str() + date + 29) << answer;
  EXPECT_LE(std::abs(std::difftime(::timegm(&parts), ::time(nullptr))), 10);
  EXPECT_EQ(answer.substr(0, date),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 20\r\nDate: ");
  EXPECT_EQ(answer.substr(date + 29), "\r\nConnection: keep-alive\r\n\r\nGET /echo a=1&b=%20|");
}

TEST(HttpServer, KeepsTheConnectionForManyRequests) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  for (int i = 0; i < 50; ++i) {
    client.send(post("/echo", std::string(static_cast<size_t>(i), 'x')));
    EXPECT_EQ(client.read_response().body,
              "POST /echo |" + std::string(static_cast<size_t>(i), 'x'));
  }
  EXPECT_EQ(server.on_loop([&] { return server.server.stats().connections.value(); }), 1u);
  EXPECT_EQ(server.on_loop([&] { return server.server.stats().requests.value(); }), 50u);
}

TEST(HttpServer, GivesTheHandlerHeadersPeerAndId) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send("GET /hold HTTP/1.1\r\nHOST: a\r\nX-Thing:  one \r\n\ttwo\r\nEmpty:\r\n\r\n");
  ASSERT_TRUE(server.eventually([&] { return !server.seen.empty(); }));
  server.on_loop([&] {
    const HttpRequest& request = server.seen.at(0);
    using Pair = std::pair<std::string, std::string>;
    EXPECT_EQ(request.headers,
              (std::vector<Pair>{{"host", "a"}, {"x-thing", "one two"}, {"empty", ""}}));
    EXPECT_EQ(request.header("x-thing"), "one two");
    EXPECT_EQ(request.header("absent"), "");
    EXPECT_TRUE(request.peer.starts_with("127.0.0.1:")) << request.peer;
    EXPECT_EQ(request.id, 1u);
  });
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  std::string requests;
  for (int i = 0; i < 200; ++i) requests += post("/echo", std::to_string(i));
  client.send(requests);
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(client.read_response().body, "POST /echo |" + std::to_string(i));
}

TEST(HttpServer, APipelinedRequestWaitsForTheAnswerBeforeIt) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send(get("/hold") + get("/hold") + get("/echo"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  EXPECT_TRUE(client.is_quiet(30));
  for (const char* body : {"first", "second"}) {
    server.on_loop([&] {
      ASSERT_EQ(server.held.size(), 1u);
      server.held[0]->respond(200, {}, body);
      server.held.clear();  // The next request comes later, not within respond().
    });
    EXPECT_EQ(client.read_response().body, body);
    if (std::string_view(body) == "first") {
      ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
    }
  }
  EXPECT_EQ(client.read_response().body, "GET /echo |");
}

TEST(HttpServer, PipelinedBytesBeyondTheBoundStayInTheSocket) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send(get("/hold"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  // The server stops reading, so at some point the socket takes no more.
  const std::string more = post("/echo", std::string(100'000, 'p'));
  std::string sent;
  while (sent.size() < (64 << 20)) {
    pollfd state{client.fd(), POLLOUT, 0};
    if (::poll(&state, 1, 200) <= 0) break;
    const ssize_t count =
        ::send(client.fd(), more.data(), more.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count <= 0) break;
    sent.append(more, 0, static_cast<size_t>(count));
    if (static_cast<size_t>(count) < more.size()) break;
  }
  EXPECT_LT(sent.size(), 32u << 20);
  server.on_loop([&] { server.held[0]->respond(200, {}, "now"); });
  EXPECT_EQ(client.read_response().body, "now");
  for (size_t i = 0; i < sent.size() / more.size(); ++i)
    ASSERT_EQ(client.read_response().body.size(), 100'012u);
}

TEST(HttpServer, NoticesThatAClientLeftThoughReadingIsStopped) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send(get("/hold") + std::string(120'000, 'x'));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  std::this_thread::sleep_for(20ms);
  client.close();
  EXPECT_TRUE(server.eventually([&] { return server.closed_calls == 1; }, 2'000));
}

TEST(HttpServer, NoticesThatAClientLeftAfterReadingHadBeenStoppedOnce) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  // The second request's body stops the reading; when it is parsed, little is left to wait for.
  client.send(get("/hold") + post("/hold", std::string(100'000, 'x')) + get("/echo"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  std::this_thread::sleep_for(20ms);
  server.on_loop([&] { server.held[0]->respond(200, {}, "first"); });
  EXPECT_EQ(client.read_response().body, "first");
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 2; }));
  client.close();
  EXPECT_TRUE(server.eventually([&] { return server.closed_calls == 1; }, 2'000));
}

TEST(HttpServer, ReadsARequestSplitByteByByte) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  const std::string chunked =
      "POST /echo HTTP/1.1\r\nHost: x\r\nX-Folded: a\r\n  b\r\nTransfer-Encoding: chunked\r\n\r\n"
      "4;ext=1\r\nabcd\r\n1\r\ne\r\n0\r\nTrailer: ignored\r\n\r\n";
  for (const char c : chunked + post("/echo", "second")) ASSERT_TRUE(client.send({&c, 1}));
  EXPECT_EQ(client.read_response().body, "POST /echo |abcde");
  EXPECT_EQ(client.read_response().body, "POST /echo |second");
  server.on_loop([&] {
    EXPECT_EQ(server.seen[0].header("x-folded"), "a b");
    EXPECT_EQ(server.seen[0].header("trailer"), "");
  });
}

TEST(HttpServer, ContinuesWhenAskedAndOnlyThen) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_EQ(client.read_response().body, "POST /echo |abc");
  client.send("GET /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n");  // No body.
  EXPECT_EQ(client.read_response().status, 200);
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(client.read_response().status, 417);
}

TEST(HttpServer, HeadHasTheHeadersOfGetAndNoBody) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send("HEAD /echo HTTP/1.1\r\nHost: x\r\n\r\n" + get("/echo"));
  const auto head = client.read_response(false);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header("Content-Length"), "12");
  EXPECT_EQ(client.read_response().body, "GET /echo |");
}

TEST(HttpServer, AStreamToHeadIsOnlyItsHeaders) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send("HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  server.on_loop([&] {
    server.held[0]->write("data: x\n\n");
    server.held[0]->end_stream();
  });
  EXPECT_EQ(client.read_response(false).header("Transfer-Encoding"), "chunked");
  client.send(get("/echo"));
  EXPECT_EQ(client.read_response().body, "GET /echo |");
}

TEST(HttpServer, PassesOptionsToTheHandler) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send("OPTIONS /echo HTTP/1.1\r\nHost: x\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_response().body, "OPTIONS /echo |");
  EXPECT_EQ(client.read_response().status, 404);
  server.on_loop([&] { EXPECT_EQ(server.seen[1].path, "*"); });
}

TEST(HttpServer, AcceptsTheAbsoluteFormAndCutsTheAuthority) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send("GET http://example.org:80/echo?q HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(client.read_response().body, "GET /echo q|");
}

TEST(HttpServer, IgnoresAnOfferToUpgrade) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send(
      post("/echo", "abc",
           "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"));
  EXPECT_EQ(client.read_response().body, "POST /echo |abc");
  client.send(get("/echo"));
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(HttpServer, ClosesAfterConnectionCloseAndAfterHttp10) {
  TestServer server;
  server.start();
  for (const char* request : {"GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                              "GET /echo HTTP/1.0\r\n\r\n"}) {
    RawClient client(server.port());
    client.send(request);
    const std::string answer = client.read_to_end();
    EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
    EXPECT_TRUE(answer.ends_with("GET /echo |")) << answer;
  }
  RawClient client(server.port());
  for (int i = 0; i < 2; ++i) {
    client.send("GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(client.read_response().header("Connection"), "keep-alive");
  }
}

TEST(HttpServer, AResponseWithoutContentHasNeitherBodyNorLength) {
  Loop loop;
  HttpServer http(
      loop, {},
      [](HttpRequest, HttpResponderPtr responder) {
        responder->respond(204, {{"X-Bad", "a\r\nInjected: b"}}, "dropped");
      },
      [](int, std::string_view, const HttpRequest&) {
        return std::pair<std::string, std::string>();
      });
  ASSERT_TRUE(http.listen_tcp("127.0.0.1", 0));
  std::thread thread([&] { loop.run(); });
  RawClient client(http.port());
  client.send(get("/a") + get("/b"));
  for (int i = 0; i < 2; ++i) {
    const auto answer = client.read_response();
    EXPECT_EQ(answer.status, 204);
    EXPECT_EQ(answer.header("Content-Length"), "");
    EXPECT_EQ(answer.header("Injected"), "");
    EXPECT_EQ(answer.header("X-Bad"), "a  Injected: b");
  }
  loop.stop();
  thread.join();
}

TEST(HttpServer, ListensOnIpv6AndGivesThePeer) {
  TestServer server({}, "[::1]");
  server.start();
  RawClient client(server.port(), "::1");
  if (!client.connected()) GTEST_SKIP() << "no IPv6 loopback";
  client.send(get("/echo"));
  EXPECT_EQ(client.read_response().status, 200);
  server.on_loop([&] { EXPECT_TRUE(server.seen[0].peer.starts_with("[::1]:")); });
}

TEST(HttpServer, LocalhostListensOnEveryAddressOfTheNameWithOnePort) {
  addrinfo* found = nullptr;
  if (::getaddrinfo("localhost", nullptr, nullptr, &found) != 0)
    GTEST_SKIP() << "this machine's /etc/hosts has no localhost";
  ::freeaddrinfo(found);
  TestServer server({}, "localhost");
  server.start();
  RawClient client(server.port());
  client.send(get("/echo"));
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(HttpServer, ListensOnAUnixSocketAndTakesOverAStaleOne) {
  const std::string path = testing::TempDir() + "weir_net_" + std::to_string(::getpid()) + ".sock";
  {
    const int stale = ::socket(AF_UNIX, SOCK_STREAM, 0);  // Bound, closed, left behind.
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(stale, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ::close(stale);
  }
  {
    TestServer server({}, "", path);
    server.start();
    RawClient client(path);
    ASSERT_TRUE(client.connected());
    client.send(get("/echo"));
    EXPECT_EQ(client.read_response().status, 200);
    server.on_loop([&] { EXPECT_EQ(server.seen[0].peer, "unix"); });

    Loop other_loop;
    HttpServer other(other_loop, {}, {}, {});
    const Result<void> second = other.listen_unix(path);
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("another program listens there"), std::string::npos);
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0) << "the socket is removed at the end";
}

TEST(HttpServer, SaysWhyItCannotListen) {
  TestServer server;
  Loop loop;
  HttpServer other(loop, {}, {}, {});
  const auto message = [](const Result<void>& result) {
    return result ? std::string("no error") : result.error().message;
  };
  const std::string port = std::to_string(server.port());
  EXPECT_EQ(message(other.listen_tcp("127.0.0.1", server.port())),
            "cannot listen on 127.0.0.1:" + port +
                ": address already in use: another program listens there; choose another port");
  EXPECT_EQ(message(other.listen_tcp("192.0.2.1", 0)),
            "cannot listen on 192.0.2.1:0: address not available: it is not an address of this "
            "machine");
  EXPECT_NE(message(other.listen_tcp("no-such-host.invalid", 0)).find("the host is unknown"),
            std::string::npos);
  EXPECT_NE(message(other.listen_unix(std::string(200, 'x'))).find("1 to 107 bytes, found 200"),
            std::string::npos);
  EXPECT_EQ(other.port(), 0);
}

TEST(HttpServer, DrainFinishesAnswersAndRefusesTheRest) {
  TestServer server;
  server.start();
  RawClient idle(server.port()), busy(server.port()), streaming(server.port());
  idle.send(get("/echo"));
  EXPECT_EQ(idle.read_response().status, 200);
  busy.send(get("/hold"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  streaming.send(get("/stream"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 2; }));

  bool done = false;
  server.on_loop([&] { server.server.drain([&] { done = true; }); });
  EXPECT_TRUE(idle.is_closed_silently());
  EXPECT_FALSE(RawClient(server.port()).connected());
  EXPECT_FALSE(server.on_loop([&] { return done; }));
  server.on_loop([&] {
    server.held[0]->respond(200, {}, "late");
    server.held[1]->write("data: x\n\n");
    server.held[1]->end_stream();
  });
  const std::string answer = busy.read_to_end();
  EXPECT_NE(answer.find("Connection: close"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("late"));
  busy.close();
  EXPECT_TRUE(streaming.read_to_end().ends_with("9\r\ndata: x\n\n\r\n0\r\n\r\n"));
  streaming.close();
  EXPECT_TRUE(server.eventually([&] { return done; }));
}

TEST(HttpServer, DrainOfAnIdleServerIsDoneAtOnceButNotWithinTheCall) {
  TestServer server;
  server.start();
  bool done = false;
  server.on_loop([&] {
    server.server.drain([&] { done = true; });
    EXPECT_FALSE(done);
  });
  EXPECT_TRUE(server.eventually([&] { return done; }));
}

TEST(HttpServer, MayBeDestroyedWhileTheLoopGoesOn) {
  Loop loop;
  auto http = std::make_unique<HttpServer>(
      loop, HttpLimits{}, [](HttpRequest, HttpResponderPtr) {},
      [](int, std::string_view, const HttpRequest&) {
        return std::pair<std::string, std::string>();
      });
  ASSERT_TRUE(http->listen_tcp("127.0.0.1", 0));
  const uint16_t port = http->port();
  std::thread thread([&] { loop.run(); });
  RawClient client(port);
  client.send(get("/hangs"));
  std::promise<void> gone;
  loop.post([&] {
    http.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  EXPECT_TRUE(client.is_closed_silently());
  EXPECT_FALSE(RawClient(port).connected());
  loop.stop();
  thread.join();
}

}  // namespace
}  // namespace weir::net
