// The bytes of answers and events.
#include "api/answer_shape.h"

#include <gtest/gtest.h>

namespace weir::api {
namespace {

AnswerShape shape(Endpoint endpoint, bool include_usage) {
  return AnswerShape({.endpoint = endpoint,
                      .id = "id-1",
                      .model = "org/\"m\"",
                      .created = 1700000000,
                      .include_usage = include_usage});
}

constexpr std::string_view kUsage =
    R"({"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,)"
    R"("prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},)"
    R"("completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,)"
    R"("accepted_prediction_tokens":0,"rejected_prediction_tokens":0}})";

TEST(AnswerShape, WritesChatEvents) {
  const std::string head =
      R"(data: {"id":"id-1","object":"chat.completion.chunk","created":1700000000,)"
      R"("model":"org/\"m\"","choices":[)";
  std::string out;
  const AnswerShape chat = shape(Endpoint::kChat, false);
  chat.append_role(out, 1);
  chat.append_text(out, 1, "a\"\n\xc3\xa9", "null");
  chat.append_finish(out, 1, "length", "null");
  AnswerShape::append_done(out);
  EXPECT_EQ(out, head +
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

TEST(AnswerShape, WritesUsageOnceAndNullBefore) {
  std::string out;
  const AnswerShape chat = shape(Endpoint::kChat, true);
  chat.append_text(out, 0, "x", "null");
  EXPECT_TRUE(out.ends_with(R"("finish_reason":null}],"usage":null})"
                            "\n\n"))
      << out;
  out.clear();
  chat.append_usage(out, {.prompt_tokens = 7, .cached_tokens = 4, .completion_tokens = 3});
  EXPECT_EQ(out, R"(data: {"id":"id-1","object":"chat.completion.chunk","created":1700000000,)"
                 R"("model":"org/\"m\"","choices":[],"usage":)" +
                     std::string(kUsage) + "}\n\n");
}

TEST(AnswerShape, WritesCompletionEvents) {
  const std::string head = R"(data: {"id":"id-1","object":"text_completion","created":1700000000,)"
                           R"("model":"org/\"m\"","choices":[)";
  std::string out;
  const AnswerShape completions = shape(Endpoint::kCompletions, false);
  completions.append_role(out, 0);
  completions.append_text(out, 0, "x", R"({"tokens":["x"]})");
  completions.append_finish(out, 0, "stop", "null");
  EXPECT_EQ(out, head +
                     R"({"index":0,"text":"x","logprobs":{"tokens":["x"]},"finish_reason":null}]})"
                     "\n\n" +
                     head +
                     R"({"index":0,"text":"","logprobs":null,"finish_reason":"stop"}]})"
                     "\n\n");
}

TEST(AnswerShape, WritesWholeAnswers) {
  const Usage usage{.prompt_tokens = 7, .cached_tokens = 4, .completion_tokens = 3};
  const auto append = [](const AnswerShape& shape, std::string& out, int32_t index,
                         const char* text, const char* logprobs, const char* reason) {
    shape.begin_whole_choice(out, index, {text, {}, {}});
    out += logprobs;
    AnswerShape::end_whole_choice(out, reason);
  };
  const AnswerShape chat = shape(Endpoint::kChat, false);
  std::string out;
  chat.begin_whole(out);
  append(chat, out, 0, "a", "null", "stop");
  append(chat, out, 1, "", "{}", "length");
  AnswerShape::end_whole(out, usage);
  EXPECT_EQ(out,
            R"({"id":"id-1","object":"chat.completion","created":1700000000,"model":"org/\"m\"",)"
            R"("choices":[{"index":0,"message":{"role":"assistant","content":"a","refusal":null,)"
            R"("annotations":[]},"logprobs":null,"finish_reason":"stop"},)"
            R"({"index":1,"message":{"role":"assistant","content":"","refusal":null,)"
            R"("annotations":[]},"logprobs":{},"finish_reason":"length"}],"usage":)" +
                std::string(kUsage) + "}");
  const AnswerShape completions = shape(Endpoint::kCompletions, false);
  out.clear();
  completions.begin_whole(out);
  append(completions, out, 0, "a", "null", "stop");
  AnswerShape::end_whole(out, usage);
  EXPECT_EQ(
      out, R"({"id":"id-1","object":"text_completion","created":1700000000,"model":"org/\"m\"",)"
           R"("choices":[{"index":0,"text":"a","logprobs":null,"finish_reason":"stop"}],"usage":)" +
               std::string(kUsage) + "}");
}

}  // namespace
}  // namespace weir::api
