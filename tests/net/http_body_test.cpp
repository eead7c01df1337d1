// What bodies may cost while they arrive: memory of all together, time of each; and those that
// nobody wants.
#include <gtest/gtest.h>

#include "net/http_parser.h"
#include "test_server.h"

namespace weir::net {
namespace {

std::string announced(size_t bytes) {
  return "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
}

// A parser that has read this much of a body of `total` bytes.
void begin_body(HttpParser& parser, size_t total, size_t sent) {
  const std::string head = announced(total), part(sent, 'b');
  std::string_view bytes = head;
  ASSERT_EQ(parser.feed(bytes), HttpParser::Event::kHeaders);
  bytes = part;
  ASSERT_EQ(parser.feed(bytes),
            sent < total ? HttpParser::Event::kMore : HttpParser::Event::kRequest);
}

struct CountedMemory final : BodyMemory {
  bool hold_body(size_t bytes) override {
    held = bytes;
    return true;
  }
  size_t held = 0;
};

TEST(HttpBodies, SayWhatTheyHoldAndGiveItBack) {
  CountedMemory memory;
  {
    HttpParser left(2'000, 50'000, &memory);
    begin_body(left, 40'000, 1'000);
    EXPECT_GE(memory.held, 1'000u);
    EXPECT_LE(memory.held, 2'000u) << "an announced length costs nothing before it comes";
  }
  EXPECT_EQ(memory.held, 0u) << "the client has left";
  HttpParser taken(2'000, 50'000, &memory);
  begin_body(taken, 40'000, 40'000);
  EXPECT_EQ(memory.held, 40'000u) << "no more than the announced length";
  EXPECT_EQ(taken.take_request().body.size(), 40'000u);
  EXPECT_EQ(memory.held, 0u);
  begin_body(taken, 40'000, 10'000);
  EXPECT_GE(memory.held, 10'000u);
  taken.discard_body();
  EXPECT_EQ(memory.held, 0u);
}

TEST(HttpBodies, BeyondTheCommonLimitGet503UntilOthersAreComplete) {
  HttpLimits limits;
  limits.body_bytes_max = 100'000;
  limits.arriving_bytes_max = 200'000;
  TestServer server(limits);
  server.start();
  RawClient first(server.port()), second(server.port()), third(server.port());
  const std::string rest(10'000, 'x');
  first.send(announced(100'000) + std::string(90'000, 'x'));
  first.send("");
  EXPECT_TRUE(first.is_quiet(50));
  second.send(announced(100'000) + std::string(90'000, 'x'));
  const auto refused = second.read_response();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Connection"), "close");
  first.send(rest);
  EXPECT_EQ(first.read_response().status, 200);
  third.send(announced(100'000) + std::string(90'000, 'x') + rest);
  EXPECT_EQ(third.read_response().status, 200) << "what the others held is free again";
  server.on_loop([&] { EXPECT_EQ(server.server.stats().refused_bodies.value(), 1u); });
}

TEST(HttpBodies, ThatTrickleGet408HoweverOftenAByteComes) {
  HttpLimits limits;
  limits.body_timeout_ms = 150;
  limits.body_bytes_per_s_min = 1'000;
  TimedServer server(limits);
  server.start();
  RawClient trickle(server.port()), steady(server.port());
  trickle.send(announced(1'000));
  steady.send(announced(1'000));
  server.take_in(trickle);
  server.take_in(steady);
  // 400 ms: one sends 10 bytes a time, which are worth 10 ms of 40, the other 100.
  for (int i = 1; i <= 10; ++i) {
    server.advance(40);
    EXPECT_EQ(trickle.is_quiet(0), i <= 4) << "late by 150 ms after 190";
    trickle.send(std::string(10, 't'));
    steady.send(std::string(100, 's'));
    server.take_in(trickle);
    server.take_in(steady);
  }
  EXPECT_EQ(trickle.read_response().status, 408);
  EXPECT_EQ(steady.read_response().status, 200);
}

// What a rush has gained is not kept: a byte now and then does not hold what came at once before.
TEST(HttpBodies, ThatStopAfterARushGet408LikeOthers) {
  HttpLimits limits;
  limits.body_timeout_ms = 150;
  limits.body_bytes_per_s_min = 1'000;
  TimedServer server(limits);
  server.start();
  RawClient client(server.port());
  client.send(announced(200'000) + std::string(100'000, 'r'));  // A hundred seconds' worth.
  for (int i = 0; i < 3; ++i) {
    server.take_in(client);
    server.advance(40);
    EXPECT_TRUE(client.is_quiet(0));
    client.send("t");
  }
  server.take_in(client);
  server.advance(40 + server.kTickMs);
  EXPECT_EQ(client.read_response().status, 408);
}

TEST(HttpBodies, SmallOnesFindRoomBesideLargeOnes) {
  HttpLimits limits;
  limits.body_bytes_max = 1'000'000;
  limits.arriving_bytes_max = 1'200'000;
  limits.small_bodies_bytes_max = 200'000;
  TestServer server(limits);
  server.start();
  RawClient large(server.port()), small(server.port()), chunked(server.port()),
      middling(server.port());
  large.send(announced(1'000'000) + std::string(400'000, 'l'));
  EXPECT_TRUE(large.is_quiet(50));
  middling.send(announced(300'000) + std::string(299'999, 'm'));
  EXPECT_EQ(middling.read_response().status, 503);
  small.send(announced(60'000) + std::string(60'000, 's'));
  EXPECT_EQ(small.read_response().status, 200);
  chunked.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7530\r\n" +
               std::string(30'000, 'c') + "\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.read_response().status, 200);
}

TEST(HttpBodies, ThatComeSlowlyAreGivenUpForOthers) {
  HttpLimits limits;
  limits.body_bytes_max = 1'000'000;
  limits.arriving_bytes_max = 1'200'000;
  limits.body_grace_ms = 100;
  TestServer server(limits);
  server.start();
  RawClient stalled(server.port()), other(server.port());
  stalled.send(announced(900'000) + std::string(400'000, 'a'));
  EXPECT_TRUE(stalled.is_quiet(150));
  other.send(announced(400'000) + std::string(400'000, 'b'));
  EXPECT_EQ(other.read_response().status, 200);
  const auto given_up = stalled.read_response();
  EXPECT_EQ(given_up.status, 408);
  EXPECT_NE(given_up.body.find("others need the room"), std::string::npos) << given_up.body;
  server.on_loop([&] { EXPECT_EQ(server.server.stats().yielded_bodies.value(), 1u); });
}

// What is answered without its body has none, and its connection is kept where that is cheap.
TEST(HttpBodies, ThatNobodyWantsAreNeverStored) {
  HttpLimits limits;
  limits.arriving_bytes_max = limits.small_bodies_bytes_max = 1;  // Nothing can be stored.
  TestServer server(limits);
  server.server.wants_body([](const HttpRequest& request) { return request.path != "/secret"; });
  server.start();
  RawClient client(server.port());
  client.send(post("/secret", std::string(100'000, 's')) + get("/secret") + get("/echo"));
  for (int i = 0; i < 2; ++i) {
    const auto refused = client.read_response();
    EXPECT_EQ(refused.status, 404);  // The handler's.
    EXPECT_EQ(refused.header("Connection"), "keep-alive");
  }
  EXPECT_EQ(client.read_response().body, "GET /echo |");
  server.on_loop([&] {
    EXPECT_TRUE(server.seen.at(0).without_body);
    EXPECT_TRUE(server.seen.at(0).body.empty());
    EXPECT_FALSE(server.seen.at(1).without_body) << "it had none";
    EXPECT_FALSE(server.seen.at(2).without_body);
  });
  // A long body, one of unknown length, or one the client has not begun to send is not waited for.
  const std::string head = "POST /secret HTTP/1.1\r\nHost: test\r\n";
  for (const char* length :
       {"Content-Length: 6000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n",
        "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"}) {
    RawClient asks(server.port());
    asks.send(head + length);
    const auto refused = asks.read_response();
    EXPECT_EQ(refused.status, 404);
    EXPECT_EQ(refused.header("Connection"), "close");
    EXPECT_TRUE(asks.send(std::string(100'000, 'x'))) << "the connection lingers";
  }
}

}  // namespace
}  // namespace weir::net
