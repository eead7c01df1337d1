// Limits that all requests share: the queue, the memory of logs and of bodies being prepared.
#include <gtest/gtest.h>

#include "api/llama/token_endpoints.h"
#include "api/memory/memory_cost.h"
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

TEST(Bodies, OfTheTokenEndpointsHaveBoundsOfTheirOwn) {
  TestApi server;
  const auto text = [&](size_t bytes) {
    return server.post("/tokenize", R"({"content":")" + std::string(bytes, 'x') + "\"}");
  };
  EXPECT_EQ(text(llama::kTokenizeBytesMax).status, 200);
  const auto refused = text(llama::kTokenizeBytesMax + 1);
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find(R"("param":"content")"), std::string::npos) << refused.body;
  EXPECT_EQ(server
                .post("/tokenize", R"({"messages":[{"role":"user","content":")" +
                                       std::string(llama::kTokenizeBytesMax, 'x') + "\"}]}")
                .status,
            400);
  const auto ids = [&](size_t count) {
    std::string list = "65";
    for (size_t i = 1; i < count; ++i) list += ",65";
    return server.post("/detokenize", R"({"tokens":[)" + list + "]}").status;
  };
  EXPECT_EQ(ids(llama::kDetokenizeIdsMax), 200);
  EXPECT_EQ(ids(llama::kDetokenizeIdsMax + 1), 400);
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
  RawClient second(server.port());
  second.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":4000})"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 1; }));
  EXPECT_EQ(server.chat(R"(,"n":2)").status, 429);
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 1; }));
  EXPECT_EQ(server.chat().status, 200);
  // One that never fits is told so.
  for (const char* body : {R"({"prompt":"A","n":3})", R"({"prompt":["A","B","C"]})"}) {
    const auto never = server.post("/v1/completions", body);
    EXPECT_EQ(never.status, 400);
    EXPECT_NE(never.body.find(R"("param":"n")"), std::string::npos) << never.body;
    EXPECT_EQ(never.header("Retry-After"), "");
  }
}

// Two keys are two callers.
struct FullQueue : testing::Test {
  static std::string bearer(const char* key) {
    return std::string("Authorization: Bearer ") + key + "\r\n";
  }
  void send(const char* key, const std::string& more) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(
        net::post("/v1/completions",
                  R"({"prompt":"A","max_tokens":4000,"temperature":0)" + more + "}", bearer(key)));
    const auto open = static_cast<int32_t>(clients.size());
    EXPECT_TRUE(server.eventually([&] { return server.engine().open() == open; }));
  }
  auto ask(const char* key, const std::string& more) {
    return server.post("/v1/completions", R"({"prompt":"A","max_tokens":2)" + more + "}",
                       bearer(key));
  }

  TestApi server{{.config = {.api_keys = {{.secret = "greedy", .name = "g"},
                                          {.secret = "modest", .name = "m"}}},
                  .queue_max = 4,
                  .running_max = 2,
                  .step_us = 500}};
  std::vector<std::unique_ptr<RawClient>> clients;
};

TEST_F(FullQueue, GivesTheNewcomerAPlaceOfTheOneThatHasMost) {
  for (int i = 0; i < 4; ++i) send("greedy", "");
  EXPECT_EQ(ask("greedy", "").status, 429);
  EXPECT_EQ(ask("modest", "").status, 200);
  // The last one had not begun.
  const auto ended = clients.back()->read_response();
  EXPECT_EQ(ended.status, 429);
  EXPECT_NE(ended.body.find("other callers waited with fewer in it"), std::string::npos)
      << ended.body;
  EXPECT_EQ(ended.header("Retry-After"), "1");
  EXPECT_EQ(server.engine().open(), 3);
}

TEST_F(FullQueue, GivesTextsAPlaceToo) {
  for (int i = 0; i < 4; ++i) send("greedy", "");
  EXPECT_EQ(server.post("/v1/embeddings", R"({"input":["A","B","C"]})", bearer("modest")).status,
            200);
}

TEST_F(FullQueue, GivesNobodyMoreThanItsPart) {
  for (int i = 0; i < 4; ++i) send("greedy", "");
  EXPECT_EQ(ask("modest", R"(,"n":3)").status, 429);  // It would have more.
  EXPECT_EQ(server.engine().open(), 4);
  EXPECT_EQ(ask("modest", "").status, 200);
}

TEST_F(FullQueue, ForgetsANewcomerThatLeaves) {
  for (int i = 0; i < 4; ++i) send("greedy", "");
  RawClient modest(server.port());
  modest.send(
      net::post("/v1/completions", R"({"prompt":"A","max_tokens":4000})", bearer("modest")));
  EXPECT_EQ(clients.back()->read_response().status, 429);
  modest.close();
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 3; }));
}

TEST(Clients, AreSentAwayWhenTheLogsWouldTakeTooMuchMemory) {
  TestOptions options;
  options.config.log_bytes_max = 100'000;
  options.step_us = 1000;
  TestApi server(options);
  const auto streamed = [](const std::string& more, const char* stream = "true") {
    return net::post("/v1/completions",
                     R"({"prompt":"A","stream":)" + std::string(stream) + more + "}");
  };
  RawClient first(server.port()), second(server.port());
  first.send(streamed(R"(,"max_tokens":4000,"n":2)"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 2; }));
  second.send(streamed(R"(,"max_tokens":4000,"n":2)"));
  EXPECT_EQ(second.read_response().status, 429);
  first.close();
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 0; }));
  // What would not fit an idle server either is told so: alone, in sum, and as one whole answer.
  const std::pair<std::string, std::string> never[] = {
      {R"(,"max_tokens":4000,"logprobs":5)", "max_tokens"},
      {R"(,"max_tokens":3000,"n":5)", "n"},
      {R"(,"max_tokens":1000,"logprobs":1)", "max_tokens"}};
  for (const auto& [more, param] : never) {
    RawClient client(server.port());
    client.send(streamed(more, more.ends_with("1") ? "false" : "true"));
    const auto refused = client.read_response();
    EXPECT_EQ(refused.status, 400) << more;
    EXPECT_NE(refused.body.find("\"param\":\"" + param + "\""), std::string::npos) << refused.body;
    EXPECT_EQ(refused.header("Retry-After"), "");
  }
  RawClient fits(server.port());
  fits.send(streamed(R"(,"max_tokens":30,"logprobs":1)"));
  EXPECT_EQ(fits.read_response().status, 200);
}

TEST(Logs, OfWholeAnswersAreLeasedUntilTheyAreSent) {
  TestOptions options;
  // Room for the JSON of one such answer, but not of two.
  options.config.log_bytes_max = 3 * answer_bytes(100, true, 5) / 2;
  options.step_us = 2'000;
  TestApi server(options);
  const std::string whole =
      net::post("/v1/completions", R"({"prompt":"A","max_tokens":100,"logprobs":5})");
  RawClient first(server.port()), second(server.port());
  first.send(whole);
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 1; }));
  second.send(whole);
  EXPECT_EQ(second.read_response().status, 429);
  EXPECT_EQ(first.read_response().status, 200);
  second.send(whole);
  const auto answer = second.read_response();
  EXPECT_EQ(answer.status, 200);
  EXPECT_LE(answer.body.size() * kAnswerCopies, answer_bytes(100, true, 5));
}

}  // namespace
}  // namespace weir::api
