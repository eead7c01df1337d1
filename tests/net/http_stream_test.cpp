// Streams: chunk framing, slow readers, clients that leave.
#include <gtest/gtest.h>

#include "test_server.h"

namespace weir::net {
namespace {

TEST(HttpStream, IsChunkedByteExactlyAndKeepsTheConnection) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  for (int round = 0; round < 3; ++round) {
    client.send(get("/stream"));
    ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
    const std::string head = client.read_until("\r\n\r\n");  // At once, before any event.
    EXPECT_NE(head.find("\r\nTransfer-Encoding: chunked\r\n"), std::string::npos) << head;
    EXPECT_NE(head.find("\r\nConnection: keep-alive\r\n"), std::string::npos) << head;
    EXPECT_EQ(head.find("Content-Length"), std::string::npos) << head;
    server.on_loop([&] {
      server.held[0]->write("data: hello\n\n");
      server.held[0]->write("");  // Nothing; not the last chunk.
      server.held[0]->write(std::string(300, 'x'));
    });
    EXPECT_EQ(client.read_until("x\r\n"),
              "d\r\ndata: hello\n\n\r\n12c\r\n" + std::string(300, 'x') + "\r\n");
    server.on_loop([&] {
      server.held[0]->end_stream();
      server.held[0]->write("ignored");
      server.held[0]->end_stream();
      EXPECT_FALSE(server.held[0]->closed());
      server.held.clear();
    });
    EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
  }
  server.on_loop([&] { EXPECT_EQ(server.closed_calls, 0); });
}

TEST(HttpStream, ToHttp10IsPlainAndEndsWithTheConnection) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  server.on_loop([&] {
    server.held[0]->write("data: a\n\n");
    server.held[0]->write("data: b\n\n");
    server.held[0]->end_stream();
  });
  const std::string answer = client.read_to_end();
  EXPECT_NE(answer.find("\r\nConnection: close\r\n"), std::string::npos);
  EXPECT_EQ(answer.find("Transfer-Encoding"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\ndata: a\n\ndata: b\n\n")) << answer;
}

// The clock stands still: no timer is needed for it.
TEST(HttpStream, AClientThatLeavesIsNoticedStreamedOrNot) {
  TimedServer server;
  server.start();
  int leaving = 0;
  for (const char* path : {"/stream", "/hold"}) {
    for (const char* how : {"close", "reset", "half"}) {
      RawClient client(server.port());
      client.send(get(path));
      ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
      if (how[0] == 'c') client.close();
      if (how[0] == 'r') client.reset();
      if (how[0] == 'h') client.shut_down_sending();
      ++leaving;
      ASSERT_TRUE(server.eventually([&] { return server.closed_calls == leaving; }))
          << path << " " << how;
      server.on_loop([&] {
        EXPECT_TRUE(server.held[0]->closed());
        EXPECT_EQ(server.held[0]->queued_bytes(), 0u);
        // All of it is ignored now.
        if (path[1] == 's') {
          server.held[0]->write("x");
          server.held[0]->end_stream();
        } else {
          server.held[0]->respond(200, {}, "x");
        }
        server.held.clear();
      });
    }
  }
  EXPECT_TRUE(
      server.eventually([&] { return server.server.stats().open_connections.value() == 0; }));
}

TEST(HttpStream, ASlowReaderIsDrainedLaterAndDelaysNoOther) {
  TestServer server;
  server.start();
  RawClient slow(server.port(), "127.0.0.1", 4096);
  slow.send(get("/stream"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  constexpr size_t kPiece = 64 << 10;
  size_t written = 0;
  bool drained = false;
  server.on_loop([&] {
    // Until the socket is full and 1 MB waits in the server.
    while (server.held[0]->queued_bytes() < (1 << 20)) {
      server.held[0]->write(std::string(kPiece, 'x'));
      written += kPiece;
    }
    server.held[0]->on_drained([&] {
      drained = true;
      EXPECT_EQ(server.held[0]->queued_bytes(), 0u);
    });
  });
  RawClient other(server.port());
  for (int i = 0; i < 20; ++i) {
    other.send(get("/echo"));
    EXPECT_EQ(other.read_response().status, 200);
  }
  EXPECT_FALSE(server.on_loop([&] { return drained; }));
  std::thread end([&] {
    EXPECT_TRUE(server.eventually([&] { return drained; }));
    server.on_loop([&] { server.held[0]->end_stream(); });
  });
  EXPECT_EQ(slow.read_response().body, std::string(written, 'x'));
  end.join();
}

TEST(HttpStream, OnDrainedWithNothingQueuedComesSoonButNotWithinTheCall) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  client.send(get("/stream"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  int calls = 0;
  server.on_loop([&] {
    server.held[0]->on_drained([&] { ++calls; });
    EXPECT_EQ(calls, 0);
  });
  EXPECT_TRUE(server.eventually([&] { return calls == 1; }));
  server.settle();
  server.on_loop([&] { EXPECT_EQ(calls, 1); });
}

TEST(HttpStream, AClientThatNeverReadsIsClosedAtTheLimit) {
  HttpLimits limits;
  limits.stream_queue_bytes_max = 256 << 10;
  TestServer server(limits);
  server.start();
  RawClient client(server.port(), "127.0.0.1", 4096);
  client.send(get("/stream"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  server.on_loop([&] {
    size_t most = 0;
    for (int i = 0; i < 10'000 && !server.held[0]->closed(); ++i) {
      server.held[0]->write(std::string(10'000, 'x'));
      most = std::max(most, server.held[0]->queued_bytes());
    }
    EXPECT_TRUE(server.held[0]->closed());
    EXPECT_LE(most, limits.stream_queue_bytes_max + 64);  // The framing of one chunk.
    EXPECT_EQ(server.closed_calls, 0);                    // Not within write().
  });
  EXPECT_TRUE(server.eventually([&] { return server.closed_calls == 1; }));
}

TEST(HttpStream, AClientThatStopsReadingIsClosedInTime) {
  HttpLimits limits;
  limits.write_timeout_ms = 80;
  TimedServer server(limits);
  server.start();
  RawClient client(server.port(), "127.0.0.1", 4096);
  client.send(get("/stream"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  server.on_loop([&] {
    while (server.held[0]->queued_bytes() < (1 << 20))
      server.held[0]->write(std::string(64 << 10, 'x'));
  });
  const auto closed = [&] { return server.closed_calls; };
  server.advance(79);
  EXPECT_EQ(server.on_loop(closed), 0);
  // What its kernel has still taken meanwhile may have moved the deadline a few times.
  for (int i = 0; i < 10 && server.on_loop(closed) == 0; ++i) server.advance(80 + server.kTickMs);
  EXPECT_EQ(server.on_loop(closed), 1);
}

TEST(HttpStream, AClientThatReadsSlowlyIsNotTakenForOneThatDoesNot) {
  HttpLimits limits;
  limits.write_timeout_ms = 300;
  TimedServer server(limits);
  server.start();
  RawClient client(server.port(), "127.0.0.1", 64 << 10);
  client.send(get("/hold"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  constexpr size_t kSize = 24 << 20;  // More than the sockets hold and the client reads here.
  server.on_loop([&] { server.held[0]->respond(200, {}, std::string(kSize, 'y')); });
  // A megabyte each 280 ms: slow, but always moving, since it is more than its socket holds.
  for (int i = 0; i < 10; ++i) {
    std::string bytes(1 << 20, ' ');
    ASSERT_EQ(::recv(client.fd(), bytes.data(), bytes.size(), MSG_WAITALL),
              static_cast<ssize_t>(bytes.size()));
    server.settle();
    server.advance(280);
    ASSERT_EQ(server.on_loop([&] { return server.server.stats().open_connections.value(); }), 1)
        << i;
  }
}

TEST(HttpStream, WhatAnAnswerTookToMakeIsNotTakenFromItsClientsTime) {
  HttpLimits limits;
  limits.write_timeout_ms = 1'000;
  TimedServer server(limits);
  server.start();
  RawClient client(server.port(), "127.0.0.1", 64 << 10);
  client.send(get("/hold"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  server.on_loop([&] {
    server.loop.advance_clock(1'200);  // Within one turn of the loop.
    server.held[0]->respond(200, {}, std::string(12 << 20, 'y'));
  });
  server.advance(900);  // The client is slow to begin.
  EXPECT_EQ(server.on_loop([&] { return server.server.stats().open_connections.value(); }), 1);
}

TEST(HttpStream, AWholeAnswerLargerThanAnySocketBufferArrives) {
  TestServer server;
  server.start();
  RawClient client(server.port());
  const std::string big(20 << 20, 'b');
  client.send(get("/hold") + get("/echo"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  server.on_loop([&] {
    server.held[0]->respond(200, {}, big);
    EXPECT_EQ(server.held[0]->queued_bytes(), 0u);  // Complete: it is the connection's now.
  });
  EXPECT_EQ(client.read_response().body, big);
  EXPECT_EQ(client.read_response().body, "GET /echo |");
}

TEST(HttpStream, ManyStreamsFromAnotherThreadsWakeUps) {
  TestServer server;
  constexpr int kStreams = 100, kEvents = 50;
  std::atomic<int> produced{0};
  int written = 0;
  server.loop.on_wake([&] {
    const int target = produced.load();
    for (; written < target; ++written)
      for (const HttpResponderPtr& stream : server.held)
        stream->write("data: " + std::to_string(written) + "\n\n");
    if (written == kEvents) {
      for (const HttpResponderPtr& stream : server.held) stream->end_stream();
      server.held.clear();
    }
  });
  server.start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(get("/stream"));
  }
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == kStreams; }));
  std::thread producer([&] {
    for (int i = 1; i <= kEvents; ++i) {
      produced.store(i);
      server.loop.wake();
    }
  });
  std::string expected;
  for (int i = 0; i < kEvents; ++i) expected += "data: " + std::to_string(i) + "\n\n";
  for (auto& client : clients) ASSERT_EQ(client->read_response().body, expected);
  producer.join();
}

}  // namespace
}  // namespace weir::net
