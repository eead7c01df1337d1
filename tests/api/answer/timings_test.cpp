// How long an answer took, and how far its prompt is: llama-server's timings and prompt_progress.
#include <gtest/gtest.h>

#include "api/test_api.h"

namespace weir::api {
namespace {

// The events of a stream, but for the last, which is no JSON.
std::vector<JsonDoc> events_of(const std::string& body) {
  std::vector<JsonDoc> events;
  constexpr std::string_view kData = "data: ";
  for (size_t at = 0; (at = body.find(kData, at)) != std::string::npos;) {
    at += kData.size();
    const std::string text = body.substr(at, body.find("\n\n", at) - at);
    if (text == "[DONE]") break;
    auto doc = JsonDoc::parse(text);
    EXPECT_TRUE(doc) << text;
    if (doc) events.push_back(std::move(*doc));
  }
  return events;
}

std::optional<JsonObject> member(const JsonDoc& event, std::string_view name) {
  const auto found = json_get(event.root().get_object().value_unsafe(), name);
  if (!found) return std::nullopt;
  return found->get_object().value_unsafe();
}

double number(JsonObject object, std::string_view name) {
  const auto found = json_get(object, name);
  EXPECT_TRUE(found) << name;
  return found ? double(*found) : -1;
}

void expect_timings(JsonObject timings, int64_t prompt, int64_t predicted) {
  EXPECT_EQ(number(timings, "prompt_n") + number(timings, "cache_n"), prompt);
  EXPECT_EQ(number(timings, "predicted_n"), predicted);
  for (const std::string phase : {"prompt", "predicted"}) {
    const double count = number(timings, phase + "_n"), ms = number(timings, phase + "_ms");
    EXPECT_GE(ms, 0);
    if (count > 0) {
      EXPECT_NEAR(number(timings, phase + "_per_token_ms"), ms / count, 1e-6);
    }
    if (ms > 0) {
      EXPECT_NEAR(number(timings, phase + "_per_second"), 1000 * count / ms, 1e-3);
    }
  }
}

TEST(Timings, StandInEveryWholeAnswer) {
  TestOptions options;
  options.step_us = 2000;
  TestApi server(options);
  const std::string chat = server.chat().body;
  const JsonDoc doc = *JsonDoc::parse(chat);
  ASSERT_TRUE(member(doc, "timings")) << chat;
  expect_timings(*member(doc, "timings"), 19, 7);
  EXPECT_GT(number(*member(doc, "timings"), "prompt_ms"), 1);
  EXPECT_GT(number(*member(doc, "timings"), "predicted_ms"), 6);
  const JsonDoc two = *JsonDoc::parse(server.complete(R"(,"n":2,"max_tokens":5)").body);
  expect_timings(*member(two, "timings"), 1, 10);
}

TEST(Timings, StandInTheLastChunksOfAStream) {
  TestApi server;
  const std::string body = server.chat(R"(,"stream":true)").body;
  const std::vector<JsonDoc> events = events_of(body);
  for (size_t i = 0; i + 1 < events.size(); ++i) EXPECT_FALSE(member(events[i], "timings"));
  ASSERT_TRUE(member(events.back(), "timings")) << body;
  expect_timings(*member(events.back(), "timings"), 19, 7);
  const auto with_usage =
      events_of(server.chat(R"(,"stream":true,"stream_options":{"include_usage":true})").body);
  ASSERT_TRUE(member(with_usage.back(), "timings"));
  EXPECT_TRUE(member(with_usage.back(), "usage"));
}

TEST(Timings, StandInEveryChunkIfAskedFor) {
  TestApi server;
  for (const std::string path : {"/v1/chat/completions", "/v1/completions"}) {
    const std::string more = R"(,"stream":true,"timings_per_token":true,"max_tokens":5)";
    const std::string body = path.find("chat") != std::string::npos ? server.chat(more).body
                                                                    : server.complete(more).body;
    double last = 0;
    for (const JsonDoc& event : events_of(body)) {
      const auto timings = member(event, "timings");
      const bool begins = body.find("\"role\"") != std::string::npos && last == 0 && !timings;
      if (begins) continue;
      ASSERT_TRUE(timings) << body;
      EXPECT_GE(number(*timings, "predicted_n"), last);
      last = number(*timings, "predicted_n");
    }
    EXPECT_EQ(last, 5);
  }
}

TEST(PromptProgress, GrowsToTheWholePrompt) {
  TestOptions options;
  options.step_us = 3000;
  TestApi server(options);
  const std::string prompt(2000, 'A');
  for (const bool cached : {false, true}) {
    const std::string body =
        server
            .post("/v1/completions", R"({"prompt":")" + prompt +
                                         R"(","max_tokens":3,"temperature":0,"stream":true,)"
                                         R"("return_progress":true})")
            .body;
    double last = -1;
    bool answered = false;
    int64_t seen = 0;
    for (const JsonDoc& event : events_of(body)) {
      const auto progress = member(event, "prompt_progress");
      answered = answered || !progress;
      if (!progress) continue;
      ++seen;
      EXPECT_FALSE(answered) << "progress comes before the answer";
      EXPECT_EQ(number(*progress, "total"), 2000);
      EXPECT_GT(number(*progress, "processed"), last);
      EXPECT_GE(number(*progress, "time_ms"), 0);
      last = number(*progress, "processed");
      const double found = number(*progress, "cache");
      EXPECT_TRUE(cached ? found > 1900 : found == 0) << found;
    }
    EXPECT_EQ(last, 2000) << body;
    EXPECT_TRUE(cached || seen > 1) << body;
  }
  const std::string plain = server.chat(R"(,"return_progress":true)").body;
  EXPECT_EQ(plain.find("prompt_progress"), std::string::npos);
}

}  // namespace
}  // namespace weir::api
