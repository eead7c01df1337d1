// The bytes of answers in Ollama's form: lines in their order, and whole objects.
#include "api/ollama/shape.h"

#include <gtest/gtest.h>

#include <regex>

#include "base/json.h"

namespace weir::api::ollama {
namespace {

constexpr Usage kEnd{.prompt_tokens = 12,
                     .cached_tokens = 8,
                     .completion_tokens = 7,
                     .timings = {.prompt_ms = 1.5, .predicted_ms = 20}};

// Thinking, text, two calls, of which the answer's end has cut the second.
std::string answer(const AnswerFacts& facts) {
  std::string out;
  const auto shape = make_shape(facts);
  const ChoiceRef choice;
  shape->begin(out, {});
  shape->begin_choice(out, choice);
  shape->reasoning(out, choice, "Hm");
  shape->text(out, choice, "So \"it\" ");
  shape->text(out, choice, "is.");
  shape->begin_call(out, choice, {0, "call_1", "add"});
  shape->call_arguments(out, choice, 0, "{\"a\":");
  shape->call_arguments(out, choice, 0, "1}");
  shape->end_call(out, choice, 0);
  shape->begin_call(out, choice, {1, "call_2", "now"});
  shape->end_call(out, choice, 1);
  shape->begin_call(out, choice, {2, "call_3", "cut"});
  shape->call_arguments(out, choice, 2, "{\"b\":");
  shape->finish(out, choice, {FinishKind::kLength, {}, {}});
  shape->end(out, kEnd);
  EXPECT_FALSE(shape->has_more());
  out = std::regex_replace(out, std::regex(R"("created_at":"[^"]*")"), R"("created_at":"T")");
  return std::regex_replace(out, std::regex(R"("total_duration":\d+)"), R"("total_duration":0)");
}

constexpr const char* kCalls =
    R"({"id":"call_1","function":{"index":0,"name":"add","arguments":{"a":1}}})";
constexpr const char* kEmptyCall =
    R"({"id":"call_2","function":{"index":1,"name":"now","arguments":{}}})";
constexpr const char* kDone =
    R"("done":true,"done_reason":"length","total_duration":0,"load_duration":0,)"
    R"("prompt_eval_count":12,"prompt_eval_duration":1500000,"eval_count":7,)"
    R"("eval_duration":20000000})";

std::string line(const std::string& message, const std::string& end = "\"done\":false}") {
  return R"({"model":"m","created_at":"T","message":{"role":"assistant",)" + message + "}," + end +
         "\n";
}

TEST(OllamaShape, WritesALineForEachPartAndACallWhenItIsWhole) {
  EXPECT_EQ(answer({.model = "m"}),
            line(R"("content":"","thinking":"Hm")") + line(R"("content":"So \"it\" ")") +
                line(R"("content":"is.")") +
                line(R"("content":"","tool_calls":[)" + std::string(kCalls) + "]") +
                line(R"("content":"","tool_calls":[)" + std::string(kEmptyCall) + "]") +
                line(R"("content":"")", kDone));
}

TEST(OllamaShape, WritesOneObjectOfAll) {
  EXPECT_EQ(answer({.model = "m", .stream = false}) + "\n",
            line(R"("content":"So \"it\" is.","thinking":"Hm","tool_calls":[)" +
                     std::string(kCalls) + "," + kEmptyCall + "]",
                 kDone));
}

TEST(OllamaShape, CallsTheTextOfAPromptTheResponse) {
  EXPECT_TRUE(answer({.model = "m", .chat = false, .stream = false})
                  .starts_with(R"({"model":"m","created_at":"T","response":"So \"it\" is.",)"
                               R"("thinking":"Hm","done":true)"));
}

TEST(OllamaShape, ALongSilenceIsALineThatSaysNothing) {
  const auto shape = make_shape({.model = "m"});
  const std::string silence(shape->keep_alive());
  ASSERT_TRUE(silence.ends_with("}\n")) << silence;
  const auto doc = JsonDoc::parse(silence);
  ASSERT_TRUE(doc) << silence;
  EXPECT_EQ(doc->root()["message"]["content"].get_string().value(), "");
  EXPECT_FALSE(doc->root()["done"].get_bool().value());
}

TEST(OllamaShape, AFailureIsTheLastLine) {
  std::string out;
  make_shape({.model = "m"})->fail(out, Error{ErrorCode::kIo, "The engine could not go on."});
  EXPECT_EQ(out, "{\"error\":\"The engine could not go on.\"}\n");
}

}  // namespace
}  // namespace weir::api::ollama
