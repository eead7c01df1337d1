// Limits that all requests share: the queue, the memory of logs and of bodies being prepared.
#include <gtest/gtest.h>

#include "api/body_memory.h"
#include "api/test_api.h"

namespace weir::api {
namespace {

TEST(Bodies, AreSentAwayWhenTooManyAreBeingPrepared) {
  TestOptions options;
  options.config.preparing_max = 0;
  TestApi server(options);
  const auto refused = server.complete();
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.header("Retry-After"), "1");
}

TEST(Bodies, AreLeasedWhatParsingThemTakes) {
  TestOptions options;
  options.config.preparing_bytes_max = 45'000;
  TestApi server(options);
  // Both have 4,000 bytes; one is a single value, the other 2,000.
  const std::string text(3'900, 'x');
  std::string ids = "1";
  while (ids.size() < 3'900) ids += ",1";
  EXPECT_EQ(server.post("/tokenize", R"({"content":")" + text + "\"}").status, 200);
  const auto never = server.post("/detokenize", R"({"tokens":[)" + ids + "]}");
  EXPECT_EQ(never.status, 413) << "it can never fit: 429 would make the client try for ever";
  EXPECT_EQ(never.header("Retry-After"), "");
  // And what was leased is given back.
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(server.post("/tokenize", R"({"content":")" + text + "\"}").status, 200);
}

TEST(Bodies, CountValuesWhereverTheyBegin) {
  EXPECT_EQ(preparing_bytes("abc"), 3 * kPreparingPerByte);
  EXPECT_EQ(preparing_bytes(R"({"a":[1,{}]})"), 12 * kPreparingPerByte + 5 * kPreparingPerValue);
}

TEST(Clients, AreSentAwayWhenTheQueueIsFull) {
  TestApi server({.queue_max = 2, .step_us = 1000});
  RawClient first(server.port());
  first.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":4000,"n":2})"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 2; }));
  const auto refused = server.chat();
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(error_code(refused.body), "rate_limit_exceeded");
  EXPECT_EQ(refused.header("Retry-After"), "1");
  first.close();
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 0; }));
  // A request that fits only in part is refused as a whole, and leaves nothing behind.
  EXPECT_EQ(server.chat(R"(,"n":3)").status, 429);
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 0; }));
  EXPECT_EQ(server.chat().status, 200);
}

TEST(Clients, AreSentAwayWhenTheLogsWouldTakeTooMuchMemory) {
  TestOptions options;
  options.config.log_bytes_max = 100'000;
  TestApi server(options);
  const auto never = server.complete(R"(,"max_tokens":4000,"logprobs":5)");
  EXPECT_EQ(never.status, 400);
  const auto later = server.complete(R"(,"max_tokens":3000,"n":100)");
  EXPECT_EQ(later.status, 429);
  EXPECT_EQ(server.complete(R"(,"max_tokens":3000)").status, 200);
}

}  // namespace
}  // namespace weir::api
