// Limits and timeouts of HttpServer, early refusals, and hostile bytes.
#include <gtest/gtest.h>

#include <fstream>

#include "net/file_limit.h"
#include "test_server.h"

namespace weir::net {
namespace {

using namespace std::string_literals;

HttpLimits short_limits() {
  HttpLimits limits;
  limits.header_timeout_ms = limits.body_timeout_ms = limits.idle_timeout_ms = 80;
  limits.body_bytes_per_s_min = 10;  // A byte may take 100 ms.
  limits.linger_timeout_ms = 300;
  return limits;
}

TEST(HttpLimits, HalfSentHeadersGet408) {
  TimedServer server(short_limits());
  server.start();
  RawClient client(server.port());
  client.send("GET /echo HTTP/1.1\r\nHo");
  server.take_in(client);
  // A byte now and then does not help: the headers have one deadline.
  for (int i = 0; i < 4; ++i) {
    server.advance(19);
    client.send("s");
    server.take_in(client);
  }
  EXPECT_TRUE(client.is_quiet(0)) << "76 ms";
  server.advance(4 + server.kTickMs);
  const auto answer = client.read_response();
  EXPECT_EQ(answer.status, 408);
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_EQ(answer.body,
            "{\"status\":408,\"message\":\"the rest of the headers did not come in time\"}");
}

TEST(HttpLimits, AHalfSentBodyGets408ButASlowOneIsRead) {
  TimedServer server(short_limits());
  server.start();
  const std::string head = "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n";
  RawClient slow(server.port());
  slow.send(head);
  for (const char c : std::string("12345")) {
    server.take_in(slow);
    server.advance(75);  // 375 ms in all; each byte moves the deadline.
    slow.send({&c, 1});
  }
  EXPECT_EQ(slow.read_response().body, "POST /echo |12345");
  RawClient half(server.port());
  half.send(head + "12");
  server.take_in(half);
  server.advance(79);
  EXPECT_TRUE(half.is_quiet(0));
  server.advance(1 + server.kTickMs);
  EXPECT_EQ(half.read_response().status, 408);
}

TEST(HttpLimits, IdleConnectionsAreClosedSilentlyAndBusyOnesAreNot) {
  TimedServer server(short_limits());
  server.start();
  RawClient fresh(server.port()), used(server.port()), waiting(server.port());
  used.send(get("/echo"));
  EXPECT_EQ(used.read_response().status, 200);
  waiting.send(get("/hold"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  ASSERT_TRUE(
      server.eventually([&] { return server.server.stats().open_connections.value() == 3; }));
  server.advance(79);
  EXPECT_TRUE(fresh.is_quiet(0));
  EXPECT_TRUE(used.is_quiet(0));
  server.advance(1 + server.kTickMs);
  EXPECT_TRUE(fresh.is_closed_silently());
  EXPECT_TRUE(used.is_closed_silently());
  server.advance(1'000'000);
  EXPECT_TRUE(waiting.is_quiet(0));  // Its answer may take as long as it likes.
  server.on_loop([&] { server.held.at(0)->respond(200, {}, "late"); });
  EXPECT_EQ(waiting.read_response().body, "late");
}

TEST(HttpLimits, ALingeringClientIsClosedInTime) {
  TimedServer server(short_limits());
  server.start();
  RawClient client(server.port());
  client.send("garbage\r\n\r\n");
  EXPECT_NE(client.read_to_end().find("400"), std::string::npos);  // Our side is shut down ...
  const auto open = [&] { return server.server.stats().open_connections.value(); };
  server.advance(299);
  EXPECT_EQ(server.on_loop(open), 1);
  server.advance(1 + server.kTickMs);
  EXPECT_EQ(server.on_loop(open), 0);  // ... and then closed.
}

TEST(HttpLimits, AnAnnouncedBodyBeyondTheLimitGets413BeforeItIsRead) {
  HttpLimits limits;
  limits.body_bytes_max = 1000;
  TestServer server(limits);
  server.start();
  RawClient client(server.port());
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n");
  const auto answer = client.read_response();
  EXPECT_EQ(answer.status, 413);
  EXPECT_NE(answer.body.find("1000000000000 bytes is larger than the limit of 1000 bytes"),
            std::string::npos);
}

TEST(HttpLimits, AClientThatSendsTheWholeBodyFirstSeesThe413AndNoReset) {
  HttpLimits limits;
  limits.body_bytes_max = 1000;
  TestServer server(limits);
  server.start();
  for (const bool chunked : {false, true}) {
    RawClient client(server.port());
    const std::string body(8 << 20, 'x');
    if (chunked) {
      client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
      EXPECT_TRUE(client.send("800000\r\n" + body + "\r\n0\r\n\r\n"));
    } else {
      EXPECT_TRUE(client.send(post("/echo", body)));
    }
    client.shut_down_sending();
    bool reset = false;
    const std::string answer = client.read_to_end(&reset);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 Content Too Large\r\n")) << answer;
    EXPECT_FALSE(reset);
  }
}

TEST(HttpLimits, ABodyOfExactlyTheLimitIsRead) {
  HttpLimits limits;
  limits.body_bytes_max = 1000;
  TestServer server(limits);
  server.start();
  RawClient client(server.port());
  client.send(post("/echo", std::string(1000, 'x')));
  EXPECT_EQ(client.read_response().status, 200);
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n" +
              std::string(1000, 'x') + "\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_response().status, 200);
}

TEST(HttpLimits, HugeHeadersGet431) {
  TestServer server;
  server.start();
  RawClient one(server.port()), many(server.port()), line(server.port()), endless(server.port());
  one.send(get("/echo", "X: " + std::string(70'000, 'x') + "\r\n"));
  EXPECT_EQ(one.read_response().status, 431);
  std::string headers;
  for (int i = 0; i < 300; ++i) headers += "X-Many: 1\r\n";
  many.send(get("/echo", headers));
  EXPECT_EQ(many.read_response().status, 431);
  line.send(get("/long" + std::string(70'000, 'x')));
  EXPECT_EQ(line.read_response().status, 431);
  endless.send("GET / HTTP/1.1\r\nHost: x\r\nX: ");
  while (endless.send(std::string(10'000, 'y')) && !endless.read_some(0)) {
  }
  EXPECT_EQ(endless.read_response().status, 431);
}

TEST(HttpLimits, ConnectionsBeyondTheLimitGet503AtOnceWhereAllAreBeingAnswered) {
  HttpLimits limits;
  limits.connections_max = 3;
  TestServer server(limits);
  server.start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(get("/hold"));
  }
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 3; }));
  for (int i = 0; i < 5; ++i) {
    RawClient refused(server.port());
    refused.send(get("/echo"));
    const auto answer = refused.read_response();
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.header("Connection"), "close");
  }
  clients.pop_back();
  ASSERT_TRUE(
      server.eventually([&] { return server.server.stats().open_connections.value() == 2; }));
  RawClient again(server.port());
  again.send(get("/echo"));
  EXPECT_EQ(again.read_response().status, 200);
  server.on_loop([&] {
    EXPECT_EQ(server.server.stats().refused_connections.value(), 5u);
    EXPECT_EQ(server.server.stats().requests.value(), 4u);
  });
}

TEST(HttpLimits, BadRequestsAreRefusedWithAStatusAndTheConnectionEnds) {
  const std::pair<const char*, int> cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", 400},  // No Host.
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: a\n\n", 400},         // Bare LF.
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},  // Space before colon.
      {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400},
      {"GET / HTTP/3.9\r\nHost: a\r\n\r\n", 505},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"GET /\r\n\r\n", 505},                     // HTTP/0.9.
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},  // HTTP/2 preface.
      {"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 501},
      {"GET echo HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"FROB / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"\x16\x03\x01\x02\x01\x01\xfc\x03\x03\x01\r\n\r\n", 400},  // TLS hello.
      {"\r\n\r\n hello\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -3\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x3\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
       "Transfer-Encoding: chunked\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chu\r\n nked\r\n\r\n", 400},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff0\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n7ffffffffffffff\r\nabc", 0},
  };
  TestServer server;
  server.start();
  for (const auto& [bytes, status] : cases) {
    RawClient client(server.port());
    client.send(bytes);
    if (status == 0) {  // Just incomplete; must not be allocated for.
      EXPECT_TRUE(client.is_quiet(20)) << bytes;
      continue;
    }
    // An unfinished header would be waited for; the client's end is the end.
    client.send("\r\n\r\n");
    const auto answer = client.read_response();
    EXPECT_EQ(answer.status, status) << bytes;
    EXPECT_EQ(answer.header("Connection"), "close") << bytes;
    EXPECT_EQ(answer.header("Content-Type"), "application/json") << bytes;
    client.shut_down_sending();
    EXPECT_TRUE(client.is_closed_silently()) << bytes;
  }
  server.on_loop([&] { EXPECT_TRUE(server.seen.empty()); });
}

TEST(HttpLimits, ANulInAHeaderIsRefused) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"s);
  EXPECT_EQ(client.read_response().status, 400);
}

TEST(HttpLimits, ChunkFramingWithoutEndIsRefused) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1;");
  while (client.send(std::string(10'000, 'e')) && !client.read_some(0)) {
  }
  const auto answer = client.read_response();
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("more framing than content"), std::string::npos);
}

TEST(HttpLimits, ABodyOfOneByteChunksIsRead) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  std::string request = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 100'000; ++i) request += "1\r\nz\r\n";
  client.send(request + "0\r\n\r\n");
  EXPECT_EQ(client.read_response().body.size(), 12 + 100'000u);
}

TEST(HttpLimits, TwoThousandIdleConnectionsCostLittleMemoryAndNoTime) {
  constexpr int kConnections = 2'000;
  if (raise_file_limit() < 2 * kConnections + 100) GTEST_SKIP() << "too few files allowed";
  HttpLimits limits;
  limits.connections_max = kConnections + 10;
  TestServer server(limits);
  server.start();
  const auto memory_kb = [] {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
      if (word == "VmRSS:") {
        int64_t kb = 0;
        status >> kb;
        return kb;
      }
    return int64_t{0};
  };
  const auto loop_cpu_ns = [&] {
    return server.on_loop([] {
      timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
    });
  };
  const int64_t memory_before = memory_kb();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < kConnections; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(get("/echo"));
  }
  for (auto& client : clients) ASSERT_EQ(client->read_response().status, 200);
  EXPECT_LT(memory_kb() - memory_before, 16 * kConnections);  // The clients' side, too.

  const int64_t cpu_before = loop_cpu_ns();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(loop_cpu_ns() - cpu_before, 15'000'000);  // Of 300 ms; sanitizers are slow.
  clients.back()->send(get("/echo"));
  EXPECT_EQ(clients.back()->read_response().status, 200);
}

}  // namespace
}  // namespace weir::net
