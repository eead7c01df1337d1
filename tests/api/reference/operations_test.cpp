// Running a server: the queue's order and bounds, deadlines, and the pages that show them.
#include <gtest/gtest.h>

#include "api/test_api.h"

namespace weir::api::reference {
namespace {

constexpr const char* kLong = R"({"prompt":"A","max_tokens":4000,"temperature":0})";

std::string of_priority(int priority, const char* more = "") {
  return R"({"prompt":"A","max_tokens":1,"temperature":0,"priority":)" + std::to_string(priority) +
         more + "}";
}

// The member `name` of the answer's first entries, in order, as they are written.
std::vector<std::string> members(const std::string& body, const std::string& name) {
  std::vector<std::string> values;
  const std::string key = "\"" + name + "\":";
  for (size_t at = 0; (at = body.find(key, at)) != std::string::npos;) {
    at += key.size();
    values.push_back(body.substr(at, body.find_first_of(",}", at) - at));
  }
  return values;
}

TEST(Queues, RefuseWhoHasWaitedTooLong) {
  TestApi server({.config = {.queue_timeout_s = 0.2}, .running_max = 1, .step_us = 1000});
  RawClient running(server.port());
  running.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":1500})"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().stats().running.value() == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  const auto refused = server.complete();
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(error_code(refused.body), "queue_timeout");
  EXPECT_FALSE(refused.header("Retry-After").empty());
  EXPECT_LT(net::elapsed_ms(begin), 10'000);
  EXPECT_NE(server.get("/metrics").body.find("weir_queue_timeouts_total 1\n"), std::string::npos);
  // Whoever runs goes on, however long ago it came.
  EXPECT_EQ(running.read_response().status, 200);
}

TEST(Answers, EndWhenTheyTakeTooLong) {
  TestApi server({.config = {.request_timeout_s = 0.3}, .step_us = 1000});
  const auto whole = server.post("/v1/completions", kLong);
  EXPECT_EQ(whole.status, 503);
  EXPECT_EQ(error_code(whole.body), "request_timeout");
  EXPECT_EQ(whole.header("x-should-retry"), "false");
  const std::string body =
      server.post("/v1/completions", R"({"prompt":"A","max_tokens":4000,"stream":true})").body;
  const std::string last = body.substr(body.rfind("data: "));
  EXPECT_NE(last.find(R"("code":"request_timeout")"), std::string::npos) << last;
  EXPECT_EQ(body.find("[DONE]"), std::string::npos);
  EXPECT_NE(server.get("/metrics").body.find("weir_request_timeouts_total 2\n"), std::string::npos);
  EXPECT_EQ(server.complete(R"(,"max_tokens":5)").status, 200);
}

TEST(Queues, ShowEmbeddings) {
  TestApi server({.config = {.parallel = 1}, .running_max = 1, .step_us = 1000});
  RawClient running(server.port());
  running.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":4000})"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().stats().running.value() == 1; }));
  RawClient waiting(server.port());
  waiting.send(net::post("/v1/embeddings", R"({"input":["AB","ABC"]})"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 3; }));
  const std::string slots = server.get("/slots").body;
  EXPECT_EQ(members(slots, "n_prompt_tokens"), (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_EQ(members(slots, "queue_position"), (std::vector<std::string>{"1", "2"}));
  running.close();
  EXPECT_EQ(waiting.read_response().status, 200);
}

TEST(Queues, RefuseEmbeddingsThatHaveWaitedTooLong) {
  TestApi server({.config = {.queue_timeout_s = 0.2}, .running_max = 1, .step_us = 1000});
  RawClient running(server.port());
  running.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":4000})"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().stats().running.value() == 1; }));
  const auto refused = server.post("/v1/embeddings", R"({"input":["AB","ABC"]})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(error_code(refused.body), "queue_timeout");
  EXPECT_FALSE(refused.header("Retry-After").empty());
  EXPECT_NE(server.get("/metrics").body.find("weir_queue_timeouts_total 1\n"), std::string::npos);
  running.close();
}

TEST(Answers, OfEmbeddingsEndWhenTheyTakeTooLong) {
  TestApi server({.config = {.request_timeout_s = 0.3}, .queue_max = 2, .step_us = 5000});
  std::string inputs = "[1]";
  for (int i = 0; i < 2000; ++i) inputs += ",[65,66]";
  const auto late = server.post("/v1/embeddings", R"({"input":[)" + inputs + "]}");
  EXPECT_EQ(late.status, 503);
  EXPECT_EQ(error_code(late.body), "request_timeout");
  EXPECT_EQ(late.header("x-should-retry"), "false");
  EXPECT_NE(server.get("/metrics").body.find("weir_request_timeouts_total 1\n"), std::string::npos);
}

TEST(Priorities, DecideWhoIsAdmittedNext) {
  TestApi server({.config = {.parallel = 1}, .running_max = 1, .step_us = 1000});
  RawClient running(server.port());
  running.send(net::post("/v1/completions", kLong));
  EXPECT_TRUE(server.eventually([&] { return server.engine().stats().running.value() == 1; }));
  std::vector<std::unique_ptr<RawClient>> clients;
  for (const int priority : {5, 1, 0, 1}) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(net::post("/v1/completions", of_priority(priority)));
    const double waiting = static_cast<double>(clients.size());
    EXPECT_TRUE(
        server.eventually([&] { return server.engine().stats().waiting.value() == waiting; }));
  }
  const std::string slots = server.get("/slots").body;
  EXPECT_EQ(members(slots, "is_processing"),
            (std::vector<std::string>{"true", "false", "false", "false", "false"}));
  EXPECT_EQ(members(slots, "priority"), (std::vector<std::string>{"0", "0", "1", "1", "5"}));
  EXPECT_EQ(members(slots, "queue_position"), (std::vector<std::string>{"1", "2", "3", "4"}));
  EXPECT_EQ(members(slots, "id_task"), (std::vector<std::string>{"1", "4", "3", "5", "2"}));
  EXPECT_EQ(server.get("/slots?fail_on_no_slot=1").status, 503);
  running.close();
  for (const auto& client : clients) EXPECT_EQ(client->read_response().status, 200);
  EXPECT_EQ(server.get("/slots?fail_on_no_slot=1").status, 200);
  EXPECT_EQ(server.post("/v1/completions", of_priority(0, R"(,"priority":"high")")).status, 200)
      << "the first of duplicate keys wins";
  EXPECT_EQ(server.post("/v1/completions", R"({"prompt":"A","priority":"high"})").status, 400);
  EXPECT_EQ(server.post("/v1/completions", R"({"prompt":"A","priority":3000000000})").status, 400);
}

TEST(Priorities, AreBoundedByAKey) {
  TestApi server({.config = {.parallel = 1,
                             .api_keys = {{.secret = "a", .name = "a", .priority = 2},
                                          {.secret = "b", .name = "b", .priority = -9},
                                          {.secret = "c", .name = "c"}}},
                  .running_max = 1,
                  .step_us = 1000});
  const auto bearer = [](const char* key) {
    return std::string("Authorization: Bearer ") + key + "\r\n";
  };
  std::vector<std::unique_ptr<RawClient>> clients;
  const auto send = [&](const std::string& body, const char* key) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(net::post("/v1/completions", body, bearer(key)));
    const auto open = static_cast<int32_t>(clients.size());
    EXPECT_TRUE(server.eventually([&] { return server.engine().open() == open; }));
  };
  send(kLong, "b");
  EXPECT_TRUE(server.eventually([&] { return server.engine().stats().running.value() == 1; }));
  send(of_priority(-9), "a");
  send(of_priority(7), "a");
  send(R"({"prompt":"A","max_tokens":1})", "a");
  send(of_priority(-10), "b");
  send(of_priority(-9), "c");
  EXPECT_EQ(members(server.get("/slots", bearer("b")).body, "priority"),
            (std::vector<std::string>{"-9", "-9", "0", "2", "2", "7"}));
  clients.front()->close();
  for (size_t i = 1; i < clients.size(); ++i) EXPECT_EQ(clients[i]->read_response().status, 200);
}

TEST(Priorities, BeforeTheDefaultOneAreAKeysOnly) {
  TestApi server;
  const auto raised = server.post("/v1/completions", of_priority(INT32_MIN));
  EXPECT_EQ(raised.status, 200);
  EXPECT_EQ(raised.header("x-weir-ignored"), "priority (0 is the first allowed)");
  for (const int priority : {0, 1, INT32_MAX})
    EXPECT_EQ(server.post("/v1/completions", of_priority(priority)).header("x-weir-ignored"), "");
}

TEST(Pages, ShowWhatLlamaCppsClientsRead) {
  TestOptions options;
  options.config.parallel = 3;
  options.config.chat_template_source = "{{ messages }}";
  options.config.special_tokens = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  options.config.defaults.set("temperature", 0.5, kFromCommandLine);
  TestApi server(options);
  const auto props = server.get("/props");
  EXPECT_EQ(props.status, 200);
  for (const char* part :
       {R"("total_slots":3)", R"("chat_template":"{{ messages }}")", R"("bos_token":"<s>")",
        R"("eos_token":"</s>")", R"("n_ctx":4096)", R"("temperature":0.5)", R"("top_k":40)",
        R"("min_p":0.05)", R"("dry_sequence_breakers":["\n",":","\"","*"])",
        R"("modalities":{"vision":false)", R"("build_info":"weir-0.0.1")"})
    EXPECT_NE(props.body.find(part), std::string::npos) << part << " in " << props.body;
  EXPECT_EQ(server.post("/props", "{}").status, 405);
  EXPECT_EQ(members(server.get("/slots").body, "is_processing"),
            (std::vector<std::string>{"false", "false", "false"}));
  EXPECT_EQ(server.get("/ready").body, R"({"status":"ok"})");
  server.engine().drain();
  EXPECT_EQ(server.get("/ready").status, 503);
  EXPECT_EQ(server.get("/health").status, 503);
}

TEST(Operations, ADamagedModelIsNotHealthyAndNamesItsFileToWhoMayAskOnly) {
  TestApi server;
  EXPECT_EQ(server.get("/health").status, 200);
  server.engine().give_up("/models/m.safetensors: expected other bytes");
  for (const char* path : {"/health", "/v1/health", "/ready"}) {
    const auto health = server.get(path);
    EXPECT_EQ(health.status, 503) << path;
    EXPECT_NE(health.body.find("files were changed"), std::string::npos) << health.body;
    EXPECT_EQ(health.body.find("/models"), std::string::npos) << health.body;
  }
  const auto refused = server.post("/v1/completions", R"({"prompt":"A","max_tokens":3})");
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.body.find("expected other bytes"), std::string::npos) << refused.body;
  EXPECT_EQ(server.get("/v1/models").status, 200);
}

}  // namespace
}  // namespace weir::api::reference
