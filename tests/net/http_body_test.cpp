// What bodies may cost while they arrive: memory of all together, time of each.
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

TEST(HttpBodies, TakeFromTheirBudgetWhatTheyHoldAndGiveItBack) {
  BodyBudget budget(100'000);
  {
    HttpParser left(2'000, 50'000, &budget);
    begin_body(left, 40'000, 1'000);
    EXPECT_GE(budget.used(), 1'000u);
    EXPECT_LE(budget.used(), 2'000u) << "an announced length costs nothing before it comes";
  }
  EXPECT_EQ(budget.used(), 0u) << "the client has left";
  HttpParser taken(2'000, 50'000, &budget), dropped(2'000, 50'000, &budget);
  begin_body(taken, 40'000, 40'000);
  EXPECT_EQ(budget.used(), 40'000u) << "no more than the announced length";
  begin_body(dropped, 40'000, 10'000);
  dropped.discard_body();
  EXPECT_EQ(budget.used(), 40'000u);
  EXPECT_EQ(taken.take_request().body.size(), 40'000u);
  EXPECT_EQ(budget.used(), 0u);
}

TEST(HttpBodies, BeyondTheCommonLimitGet503UntilOthersAreComplete) {
  HttpLimits limits;
  limits.body_bytes_max = 100'000;
  limits.arriving_bytes_max = 150'000;
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
  TestServer server(limits);
  server.start();
  RawClient trickle(server.port()), steady(server.port());
  trickle.send(announced(1'000));
  steady.send(announced(1'000));
  const auto begin = std::chrono::steady_clock::now();
  // 400 ms: one sends 10 bytes a time, the other 100.
  for (int i = 0; i < 10; ++i) {
    std::this_thread::sleep_for(40ms);
    trickle.send(std::string(10, 't'));
    steady.send(std::string(100, 's'));
  }
  EXPECT_EQ(trickle.read_response().status, 408);
  EXPECT_GE(elapsed_ms(begin), 150);
  EXPECT_EQ(steady.read_response().status, 200);
}

TEST(HttpBodies, OfUnknownLengthCanBeRefusedBeforeTheyAreRead) {
  TestServer server;
  server.server.on_headers(
      [](const HttpRequest&, uint64_t length) { return length > 1'000 ? 401 : 0; });
  server.start();
  RawClient client(server.port());
  client.send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  const auto refused = client.read_response();
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.header("Connection"), "close");
}

}  // namespace
}  // namespace weir::net
