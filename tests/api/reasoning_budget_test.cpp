// A budget of reasoning tokens: exact, with a closing message, before any kind of answer.
#include <gtest/gtest.h>

#include <thread>

#include "api/test_api.h"

namespace weir::api {
namespace {

// The model says "A" for ever, in a prompt that has begun to reason; every byte is a token.
constexpr const char* kTemplate =
    "{% for m in messages %}{{ m.content }}{% endfor %}"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% else %}<think>"
    "{% endif %}";

TestOptions options() {
  TestOptions options;
  options.chat_template = kTemplate;
  options.config.reasoning_budget_message = "So.";
  return options;
}

std::string body(const std::string& more) {
  return R"({"messages":[{"role":"user","content":"Hi"}],"temperature":0,"max_tokens":30,)"
         R"("logit_bias":{"65":100},)" +
         more + "}";
}

struct Answer {
  std::string reasoning, content;
  int64_t reasoning_tokens = 0, tokens = 0;
};

Answer answer(const TestApi& server, const std::string& more) {
  const auto response = server.post("/v1/chat/completions", body(more));
  EXPECT_EQ(response.status, 200) << response.body;
  const JsonDoc doc = *JsonDoc::parse(response.body);
  const JsonValue root = doc.root();
  const JsonValue message = root["choices"].at(0)["message"].value();
  Answer result;
  result.content = std::string_view(message["content"]);
  std::string_view text;
  if (message["reasoning_content"].get(text) == simdjson::SUCCESS) result.reasoning = text;
  result.tokens = root["usage"]["completion_tokens"];
  result.reasoning_tokens = root["usage"]["completion_tokens_details"]["reasoning_tokens"];
  return result;
}

TEST(ReasoningBudget, IsExactUnderEveryName) {
  TestApi server(options());
  for (const char* name : {"reasoning_budget", "reasoning_budget_tokens", "thinking_budget_tokens",
                           "thinking_token_budget"}) {
    const Answer found = answer(server, "\"" + std::string(name) + "\":5");
    EXPECT_EQ(found.reasoning, "AAAAASo.") << name;
    EXPECT_EQ(found.content, "AAAAAAAAAAAAAA");
    EXPECT_EQ(found.tokens, 30);
    EXPECT_EQ(found.reasoning_tokens, 5 + 3 + 8);  // With the marker, as everywhere.
  }
  EXPECT_EQ(answer(server, R"("reasoning_budget":-1)").reasoning, std::string(30, 'A'));
  EXPECT_EQ(answer(server, R"("seed":1)").reasoning, std::string(30, 'A'));
  EXPECT_EQ(
      answer(server, R"("reasoning_budget":2,"reasoning_budget_message":"Enough!")").reasoning,
      "AAEnough!");
  EXPECT_EQ(answer(server, R"("reasoning_budget":2,"reasoning_budget_message":"")").reasoning,
            "AA");
  // Nothing but the closing fits.
  EXPECT_EQ(answer(server, R"("reasoning_budget":27)").reasoning, std::string(27, 'A') + "So.");
}

TEST(ReasoningBudget, OfNothingTellsTheTemplateToo) {
  TestApi server(options());
  EXPECT_EQ(answer(server, R"("reasoning_budget":0)").content, std::string(30, 'A'));
  const Answer insists = answer(server, R"("reasoning_budget":0,"enable_thinking":true)");
  EXPECT_EQ(insists.reasoning, "");
  EXPECT_EQ(insists.content, std::string(30 - 8, 'A'));
}

TEST(ReasoningBudget, ComesFromTheServerUnlessTheRequestSays) {
  TestOptions with = options();
  with.config.reasoning_budget = 3;
  TestApi server(with);
  EXPECT_EQ(answer(server, R"("seed":1)").reasoning, "AAASo.");
  EXPECT_EQ(answer(server, R"("reasoning_budget":1)").reasoning, "ASo.");
  EXPECT_EQ(answer(server, R"("reasoning_budget":-1)").reasoning, std::string(30, 'A'));
}

TEST(ReasoningBudget, IsFollowedByAForm) {
  TestApi server(options());
  for (const char* more : {"", R"(,"logprobs":true)", R"(,"min_tokens":20)"}) {
    const Answer found =
        answer(server, std::string(R"("reasoning_budget":4,"guided_choice":["yes","no"])") + more);
    EXPECT_EQ(found.reasoning, "AAAASo.") << more;
    EXPECT_TRUE(found.content == "yes" || found.content == "no") << found.content;
  }
}

TEST(ReasoningBudget, EndsAtStopStringsAndCountsWithLogprobs) {
  TestApi server(options());
  EXPECT_EQ(answer(server, R"("reasoning_budget":4,"stop":["o."])").reasoning, "AAAAS");
  const Answer found = answer(server, R"("reasoning_budget":4,"logprobs":true)");
  EXPECT_EQ(found.reasoning, "AAAASo.");
  EXPECT_EQ(found.tokens, 30);
}

TEST(ReasoningBudget, IsTheSameStreamedAndAmongOthers) {
  TestApi server(options());
  const auto run = [&](int budget) {
    return server
        .post("/v1/chat/completions",
              body(R"("stream":true,"reasoning_budget":)" + std::to_string(budget)))
        .body;
  };
  std::vector<std::string> alone, together(12);
  for (int i = 0; i < 12; ++i) alone.push_back(normalised(run(i)));
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i)
    threads.emplace_back([&, i] { together[static_cast<size_t>(i)] = normalised(run(i)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(alone, together);
}

}  // namespace
}  // namespace weir::api
