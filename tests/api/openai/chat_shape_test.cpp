// The bytes of answers and events of chats and completions.
#include "api/openai/chat_shape.h"

#include <gtest/gtest.h>

#include "api/without_timings.h"

namespace weir::api::openai {
namespace {

std::unique_ptr<AnswerShape> shape(Endpoint endpoint, bool stream, bool include_usage = false) {
  return make_chat_shape({.endpoint = endpoint,
                          .id = "id-1",
                          .model = "org/\"m\"",
                          .created = 1700000000,
                          .stream = stream,
                          .choices = 2,
                          .include_usage = include_usage});
}

constexpr Usage kUsed{.prompt_tokens = 7, .cached_tokens = 4, .completion_tokens = 3};
constexpr std::string_view kUsage =
    R"({"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,)"
    R"("prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},)"
    R"("completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,)"
    R"("accepted_prediction_tokens":0,"rejected_prediction_tokens":0}})";

TEST(ChatShape, WritesChatEvents) {
  const std::string head =
      R"(data: {"id":"id-1","object":"chat.completion.chunk","created":1700000000,)"
      R"("model":"org/\"m\"","choices":[)";
  std::string out;
  const auto chat = shape(Endpoint::kChat, true);
  chat->begin(out, {});
  chat->begin_choice(out, {1});
  chat->text(out, {1}, "a\"\n\xc3\xa9");
  chat->finish(out, {1}, {FinishKind::kLength, {}, {4, 3, 1.5, 6, 2}});
  chat->end(out, {});
  EXPECT_NE(out.find(R"("finish_reason":"length"}],"timings":{"cache_n":4,"prompt_n":3,)"
                     R"("prompt_ms":1.5,"prompt_per_token_ms":0.5,"prompt_per_second":2000,)"
                     R"("predicted_n":6,"predicted_ms":2,)"),
            std::string::npos)
      << out;
  EXPECT_EQ(without_timings(out),
            head +
                R"({"index":1,"delta":{"role":"assistant","content":""},"logprobs":null,)"
                R"("finish_reason":null}]})"
                "\n\n" +
                head +
                R"({"index":1,"delta":{"content":"a\"\n)"
                "\xc3\xa9"
                R"("},"logprobs":null,"finish_reason":null}]})"
                "\n\n" +
                head +
                R"({"index":1,"delta":{},"logprobs":null,"finish_reason":"length"}]})"
                "\n\ndata: [DONE]\n\n");
}

TEST(ChatShape, WritesUsageOnceAndNullBefore) {
  std::string out;
  const auto chat = shape(Endpoint::kChat, true, true);
  chat->text(out, {0}, "x");
  EXPECT_TRUE(out.ends_with(R"("finish_reason":null}],"usage":null})"
                            "\n\n"))
      << out;
  out.clear();
  chat->end(out, kUsed);
  EXPECT_EQ(without_timings(out),
            R"(data: {"id":"id-1","object":"chat.completion.chunk","created":1700000000,)"
            R"("model":"org/\"m\"","choices":[],"usage":)" +
                std::string(kUsage) + "}\n\ndata: [DONE]\n\n");
}

TEST(ChatShape, WritesCompletionEvents) {
  const std::string head = R"(data: {"id":"id-1","object":"text_completion","created":1700000000,)"
                           R"("model":"org/\"m\"","choices":[)";
  std::string out;
  const auto completions = shape(Endpoint::kCompletions, true);
  completions->begin_choice(out, {0});
  completions->text(out, {0}, "x");
  completions->finish(out, {0}, {});
  EXPECT_EQ(without_timings(out),
            head +
                R"({"index":0,"text":"x","logprobs":null,"finish_reason":null}]})"
                "\n\n" +
                head +
                R"({"index":0,"text":"","logprobs":null,"finish_reason":"stop"}]})"
                "\n\n");
}

TEST(ChatShape, EndsAStreamThatFailsWithAnEventAndNoDone) {
  std::string out;
  shape(Endpoint::kChat, true)->fail(out, Error{ErrorCode::kIo, "Broken."});
  EXPECT_EQ(out, R"(data: {"error":{"message":"Broken.","type":"server_error","param":null,)"
                 R"("code":null}})"
                 "\n\n");
}

TEST(ChatShape, WritesWholeAnswersInTheOrderOfTheirChoices) {
  std::string out;
  const auto chat = shape(Endpoint::kChat, false);
  chat->begin(out, {});
  for (const int32_t index : {1, 0}) chat->begin_choice(out, {index});
  chat->finish(out, {1}, {FinishKind::kLength, {}});
  chat->text(out, {0}, "a");
  chat->text(out, {0}, "b");
  chat->finish(out, {0}, {});
  EXPECT_EQ(out, "");
  chat->end(out, kUsed);
  EXPECT_EQ(without_timings(out),
            R"({"id":"id-1","object":"chat.completion","created":1700000000,"model":"org/\"m\"",)"
            R"("choices":[{"index":0,"message":{"role":"assistant","content":"ab","refusal":null,)"
            R"("annotations":[]},"logprobs":null,"finish_reason":"stop"},)"
            R"({"index":1,"message":{"role":"assistant","content":"","refusal":null,)"
            R"("annotations":[]},"logprobs":null,"finish_reason":"length"}],"usage":)" +
                std::string(kUsage) + "}");
}

TEST(ChatShape, WritesWholeCallsAndReasoning) {
  std::string out;
  const auto chat =
      make_chat_shape({.endpoint = Endpoint::kChat, .id = "i", .model = "m", .created = 1});
  chat->begin_choice(out, {0});
  chat->reasoning(out, {0}, "hm");
  chat->begin_call(out, {0}, {0, "call_1", "f"});
  chat->call_arguments(out, {0}, 0, "{\"a\":");
  chat->call_arguments(out, {0}, 0, "1}");
  chat->end_call(out, {0}, 0);
  chat->finish(out, {0}, {FinishKind::kCalls, {}});
  chat->end(out, kUsed);
  EXPECT_EQ(without_timings(out),
            R"({"id":"i","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,)"
            R"("message":{"role":"assistant","content":null,"reasoning_content":"hm",)"
            R"("reasoning":"hm","tool_calls":[{"id":"call_1","type":"function","function":)"
            R"({"name":"f","arguments":"{\"a\":1}"}}],"refusal":null,"annotations":[]},)"
            R"("logprobs":null,"finish_reason":"tool_calls"}],"usage":)" +
                std::string(kUsage) + "}");
}

TEST(ChatShape, WritesWholeCompletions) {
  std::string out;
  const auto completions = make_chat_shape(
      {.endpoint = Endpoint::kCompletions, .id = "id-1", .model = "m", .created = 1700000000});
  completions->text(out, {0}, "a");
  completions->finish(out, {0}, {});
  completions->end(out, kUsed);
  EXPECT_EQ(
      without_timings(out),
      R"({"id":"id-1","object":"text_completion","created":1700000000,"model":"m",)"
      R"("choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":"stop"}],"usage":)" +
          std::string(kUsage) + "}");
}

}  // namespace
}  // namespace weir::api::openai
