// What one client may take from others: connections, memory of heads and of answers, and time. A
// client's address tells it from another.
#include <gtest/gtest.h>

#include <algorithm>

#include "test_server.h"

namespace weir::net {
namespace {

constexpr const char* kHere = "127.0.0.1";
constexpr const char* kElsewhere = "127.0.0.2";

// A head of about this many bytes that does not end.
std::string begun_head(size_t bytes) {
  std::string head = "GET /echo HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; head.size() < bytes; ++i)
    head += "x-" + std::to_string(i) + ": " + std::string(240, 'v') + "\r\n";
  return head;
}

std::vector<std::unique_ptr<RawClient>> connect(const TestServer& server, int count,
                                                const std::string& bytes,
                                                const char* source = kHere) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port(), kHere, 0, source));
    clients.back()->send(bytes);
  }
  return clients;
}

TEST(HttpShares, TheLongestIdleConnectionIsClosedForANewOne) {
  HttpLimits limits;
  limits.connections_max = 3;
  TimedServer server(limits);
  server.start();
  auto clients = connect(server, 3, {});
  for (const int i : {1, 0, 2}) {
    clients[static_cast<size_t>(i)]->send(get("/echo"));
    EXPECT_EQ(clients[static_cast<size_t>(i)]->read_response().status, 200);
    server.advance(1);
  }
  RawClient fresh(server.port());
  fresh.send(get("/echo"));
  EXPECT_EQ(fresh.read_response().status, 200);
  EXPECT_TRUE(clients[1]->is_closed_silently()) << "it has been idle longest";
  clients[0]->send(get("/echo"));
  EXPECT_EQ(clients[0]->read_response().status, 200);
  server.on_loop([&] {
    EXPECT_EQ(server.server.stats().yielded_idle.value(), 1u);
    EXPECT_EQ(server.server.stats().refused_connections.value(), 0u);
  });
}

TEST(HttpShares, APeerOfManyConnectionsMakesRoomForOthers) {
  HttpLimits limits;
  limits.connections_max = 10;
  TimedServer server(limits);
  server.start();
  RawClient ordinary(server.port(), kHere, 0, kElsewhere);
  ordinary.send(get("/echo"));
  EXPECT_EQ(ordinary.read_response().status, 200);
  server.advance(1);
  const auto idle = connect(server, 30, {});
  ASSERT_TRUE(server.eventually([&] { return server.server.stats().yielded_idle.value() == 21; }));
  ordinary.send(get("/echo"));
  EXPECT_EQ(ordinary.read_response().status, 200)
      << "idle for longer, but the only one of its peer";
  const auto begun = connect(server, 30, "GET /ec");
  RawClient more(server.port(), kHere, 0, kElsewhere);
  more.send(get("/echo"));
  EXPECT_EQ(more.read_response().status, 200);
}

TEST(HttpShares, HeadsOfOnePeerLeaveRoomForOthers) {
  HttpLimits limits;
  limits.heads_bytes_max = 1 << 20;
  TestServer server(limits);
  server.start();
  const auto hostile = connect(server, 100, begun_head(60'000));
  ASSERT_TRUE(server.eventually([&] { return server.server.stats().yielded_heads.value() > 90; }));
  RawClient other(server.port(), kHere, 0, kElsewhere);
  other.send(begun_head(60'000));
  EXPECT_TRUE(other.is_quiet(30));
  other.send("\r\n");
  EXPECT_EQ(other.read_response().status, 200);
  RawClient same(server.port());
  same.send(begun_head(60'000) + "\r\n");
  EXPECT_EQ(same.read_response().status, 200);
  // Those that were given up are told why. Which ones they are, the order decides in which their
  // heads were read.
  uint64_t told = 0;
  for (const auto& client : hostile) {
    if (client->is_quiet(1)) continue;
    const auto answer = client->read_response();
    EXPECT_EQ(answer.status, 408);
    EXPECT_NE(answer.body.find("others need the room"), std::string::npos) << answer.body;
    ++told;
  }
  EXPECT_GT(told, 90u);
}

// They are not read again, so nobody can be told to send less: what does not fit is refused.
TEST(HttpShares, HeadsOfRequestsBeingAnsweredCountToo) {
  HttpLimits limits;
  limits.heads_bytes_max = 500'000;
  TestServer server(limits);
  server.start();
  const std::string request =
      "GET /hold?" + std::string(40'000, 'q') + " HTTP/1.1\r\nHost: x\r\n\r\n";
  const auto answered = connect(server, 5, request);
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 5; }));
  RawClient refused(server.port());
  refused.send(request);
  EXPECT_EQ(refused.read_response().status, 503);
  server.on_loop([&] {
    EXPECT_EQ(server.server.stats().refused_heads.value(), 1u);
    for (const HttpResponderPtr& responder : server.held) responder->respond(200, {}, "late");
  });
  EXPECT_EQ(answered.back()->read_response().status, 200);
  RawClient again(server.port());
  again.send(request);
  EXPECT_TRUE(server.eventually([&] { return server.held.size() == 6; }));
}

TEST(HttpShares, PipelinedBytesCountToo) {
  HttpLimits limits;
  limits.heads_bytes_max = 500'000;
  TestServer server(limits);
  server.start();
  auto clients = connect(server, 10, get("/hold") + std::string(60'000, 'p'));
  EXPECT_TRUE(server.eventually([&] { return server.closed_calls >= 4; }))
      << "what does not fit is closed";
  RawClient other(server.port(), kHere, 0, kElsewhere);
  other.send(get("/echo"));
  EXPECT_EQ(other.read_response().status, 200);
}

TEST(HttpShares, AnswersThatAreNotReadLeaveRoomForOthers) {
  HttpLimits limits;
  limits.answers_bytes_max = 4 << 20;
  TestServer server(limits);
  server.start();
  std::vector<std::unique_ptr<RawClient>> lazy;
  for (int i = 0; i < 8; ++i) {
    lazy.push_back(std::make_unique<RawClient>(server.port(), kHere, 4096));
    lazy.back()->send(get("/stream"));
  }
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 8; }));
  server.on_loop([&] {  // A megabyte waits of each, but one in all may be beyond the peer's part.
    for (const HttpResponderPtr& stream : server.held)
      while (!stream->closed() && stream->queued_bytes() < (1 << 20))
        stream->write(std::string(64 << 10, 'x'));
    size_t queued = 0;
    for (const HttpResponderPtr& stream : server.held)
      if (!stream->closed()) queued += stream->queued_bytes();
    EXPECT_LE(queued, (2u << 20) + (1 << 20) + (64 << 10));
    EXPECT_GT(server.server.stats().refused_answers.value(), 3u);
  });
  RawClient other(server.port(), kHere, 0, kElsewhere);
  other.send(get("/hold"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 9; }));
  const std::string large(5 << 20, 'y');  // More than its socket takes.
  server.on_loop([&] { server.held[8]->respond(200, {}, large.substr(0, 3 << 20)); });
  EXPECT_EQ(other.read_response().body.size(), 3u << 20);
}

TEST(HttpShares, ALargeAnswerThatIsAloneArrives) {
  HttpLimits limits;
  limits.answers_bytes_max = 1 << 20;
  TestServer server(limits);
  server.start();
  RawClient client(server.port());
  const std::string large(20 << 20, 'b');
  for (size_t round = 1; round <= 2; ++round) {
    client.send(get("/hold"));
    ASSERT_TRUE(server.eventually([&] { return server.held.size() == round; }));
    server.on_loop([&] { server.held.back()->respond(200, {}, large); });
    EXPECT_EQ(client.read_response().body, large);
  }
}

// One byte in time does not keep an answer.
TEST(HttpShares, AClientThatTakesNextToNothingIsClosed) {
  HttpLimits limits;
  limits.write_timeout_ms = 400;
  limits.answer_bytes_per_s_min = 1 << 20;
  TimedServer server(limits);
  server.start();
  RawClient client(server.port(), kHere, 64 << 10);
  client.send(get("/hold"));
  ASSERT_TRUE(server.eventually([&] { return server.held.size() == 1; }));
  server.on_loop([&] { server.held[0]->respond(200, {}, std::string(12 << 20, 'y')); });
  const auto closed = [&] { return server.server.stats().slow_readers.value() == 1; };
  char bytes[4096];
  for (int i = 0; i < 200 && !server.on_loop(closed); ++i) {    // Ten seconds.
    EXPECT_GE(::recv(client.fd(), bytes, sizeof bytes, 0), 0);  // 80 KB a second.
    server.advance(50);
  }
  EXPECT_TRUE(server.on_loop(closed));
}

// All bytes of one peer lie ready when the loop looks again, and the other's request came last.
TEST(HttpShares, APeerThatSendsOnManyConnectionsDoesNotHoldUpAnother) {
  constexpr int kGreedy = 200;
  TestServer server;
  server.start();
  const auto greedy = connect(server, kGreedy, {});
  RawClient ordinary(server.port(), kHere, 0, kElsewhere);
  ordinary.send(get("/echo"));  // After that all are accepted.
  ASSERT_EQ(ordinary.read_response().status, 200);
  server.on_loop([&] {
    server.seen.clear();
    for (const auto& client : greedy) client->send(begun_head(30'000) + "\r\n");
    ordinary.send(get("/echo"));
  });
  ASSERT_EQ(ordinary.read_response().status, 200);
  for (const auto& client : greedy) ASSERT_EQ(client->read_response().status, 200);
  server.on_loop([&] {
    const auto is_ordinary = [](const HttpRequest& request) { return request.headers.size() < 99; };
    ASSERT_EQ(server.seen.size(), kGreedy + 1u);
    const auto place = std::ranges::find_if(server.seen, is_ordinary) - server.seen.begin();
    EXPECT_LT(place, kGreedy / 10);
  });
}

}  // namespace
}  // namespace weir::net
