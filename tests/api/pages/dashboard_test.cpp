// The figures of the last seconds, once and as events.
#include "api/pages/dashboard.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "api/test_api.h"
#include "base/json.h"

namespace weir::api::pages {
namespace {

constexpr char kEventEnd[] = "\n\n\r\n";  // Of its data, and of the chunk.
constexpr char kEvents[] =
    "GET /dashboard HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n";

// A member of the first model of `text`.
double figure(const std::string& text, std::string_view name) {
  const auto doc = JsonDoc::parse(text);
  EXPECT_TRUE(doc) << text;
  double value = -1;
  EXPECT_EQ(doc->root()["models"].at(0)[name].get(value), simdjson::SUCCESS) << name << text;
  return value;
}

TEST(Dashboard, CountsWhatWasAnswered) {
  TestApi server;
  const std::string before = server.get("/dashboard").body;
  EXPECT_EQ(figure(before, "output_tok_s"), 0);
  EXPECT_NE(before.find("\"ttft_ms\":null"), std::string::npos) << before;
  std::this_thread::sleep_for(1200ms);  // A first sample is there to be compared with.
  ASSERT_EQ(server.post("/v1/chat/completions", TestApi::chat_body("")).status, 200);
  const std::string after = server.get("/dashboard").body;
  EXPECT_GT(figure(after, "output_tok_s"), 0) << after;
  EXPECT_GT(figure(after, "prompt_tok_s"), 0) << after;
  EXPECT_NE(after.find("\"ttft_ms\":["), std::string::npos) << after;
  EXPECT_EQ(figure(after, "running"), 0) << after;
}

TEST(Dashboard, SaysWhatIsTakenAtMost) {
  TestOptions options;
  options.config.parallel = 3;
  options.config.memory_limit = 1 << 30;
  TestApi server(options);
  const std::string figures = server.get("/dashboard").body;
  EXPECT_NE(figures.find("\"limit\":1073741824,"), std::string::npos) << figures;
  EXPECT_NE(figures.find("\"limits\":{\"running\":3,"), std::string::npos) << figures;
  EXPECT_EQ(figures.find("\"experts\""), std::string::npos) << figures;
}

// From counts that go on between two looks at them.
TEST(Dashboard, ShowsExpertsOnDisk) {
  TestOptions options;
  const auto looks = std::make_shared<std::atomic<uint64_t>>(0);
  options.config.experts = [looks] {
    const uint64_t n = ++*looks;
    return ExpertCounts{.asked = 100 * n,
                        .found = 75 * n,
                        .read_bytes = 0,
                        .stall_ns = 10'000'000 * n,
                        .tokens = 5 * n};
  };
  TestApi server(options);
  EXPECT_NE(server.get("/dashboard").body.find("\"hit\":null"), std::string::npos);
  std::this_thread::sleep_for(1200ms);  // A first sample is there to be compared with.
  const std::string figures = server.get("/dashboard").body;
  EXPECT_NE(figures.find("\"hit\":0.75,"), std::string::npos) << figures;
  EXPECT_NE(figures.find("\"stall_ms_token\":2"), std::string::npos) << figures;
}

TEST(Dashboard, SendsAnEventASecond) {
  TestApi server;
  RawClient client(server.port());
  client.send(kEvents);
  for (int event = 0; event < 2; ++event)
    EXPECT_NE(client.read_until(kEventEnd).find("data: {\"t\":"), std::string::npos) << event;
}

TEST(Dashboard, HasAsManyListenersAsItSays) {
  TestApi server;
  std::vector<std::unique_ptr<RawClient>> clients;
  for (size_t i = 0; i < Dashboard::kListenersMax; ++i) {
    clients.push_back(std::make_unique<RawClient>(server.port()));
    clients.back()->send(kEvents);
    clients.back()->read_until(kEventEnd);
  }
  EXPECT_EQ(server.get("/dashboard", "Accept: text/event-stream\r\n").status, 503);
  EXPECT_EQ(server.get("/dashboard").status, 200) << "figures once are no listener";
  clients.clear();
  std::this_thread::sleep_for(300ms);  // The server sees them leave at its next turns.
  RawClient client(server.port());
  client.send(kEvents);
  EXPECT_TRUE(client.read_until(kEventEnd).starts_with("HTTP/1.1 200 "));
}

TEST(Dashboard, AsksForAKeyOfMonitors) {
  TestOptions options;
  options.config.api_keys = {{.secret = "k", .name = "a", .scopes = {.monitor = false}}};
  TestApi server(options);
  EXPECT_EQ(server.get("/dashboard").status, 401);
  EXPECT_EQ(server.get("/dashboard", "Authorization: Bearer k\r\n").status, 403);
}

}  // namespace
}  // namespace weir::api::pages
