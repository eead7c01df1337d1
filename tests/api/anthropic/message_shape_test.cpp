// The bytes of answers in Anthropic's form: events in their order, and whole messages.
#include "api/anthropic/message_shape.h"

#include <gtest/gtest.h>

#include "api/anthropic/message_error.h"
#include "api/exchange/api_error.h"
#include "base/json.h"

namespace weir::api::anthropic {
namespace {

constexpr Usage kBegin{.prompt_tokens = 12, .cached_tokens = 8};
constexpr Usage kEnd{
    .prompt_tokens = 12, .cached_tokens = 8, .completion_tokens = 7, .reasoning_tokens = 3};

MessageFacts facts(bool stream, bool show_reasoning = true) {
  return {"msg_1", "m", stream, show_reasoning};
}

// Thinking, text, two calls, and text after them.
std::string answer(const MessageFacts& of, const Finish& finish) {
  std::string out;
  const auto shape = make_message_shape(of);
  const ChoiceRef choice;
  shape->begin(out, kBegin);
  shape->begin_choice(out, choice);
  shape->reasoning(out, choice, "Hm");
  shape->reasoning(out, choice, "m.");
  shape->text(out, choice, "So \"");
  shape->text(out, choice, "");
  shape->text(out, choice, "it\" is.");
  shape->begin_call(out, choice, {0, "toolu_1", "add"});
  shape->call_arguments(out, choice, 0, "{\"a\":");
  shape->call_arguments(out, choice, 0, "1}");
  shape->end_call(out, choice, 0);
  shape->begin_call(out, choice, {1, "toolu_2", "now"});
  shape->end_call(out, choice, 1);
  shape->text(out, choice, "Done.");
  shape->finish(out, choice, finish);
  shape->end(out, kEnd);
  return out;
}

std::string event(const std::string& name, const std::string& members) {
  return "event: " + name + "\ndata: {\"type\":\"" + name + "\"" +
         (members.empty() ? "" : "," + members) + "}\n\n";
}

std::string delta(int index, const std::string& members) {
  return event("content_block_delta",
               "\"index\":" + std::to_string(index) + ",\"delta\":{" + members + "}");
}

std::string start(int index, const std::string& members) {
  return event("content_block_start",
               "\"index\":" + std::to_string(index) + ",\"content_block\":{" + members + "}");
}

std::string stop(int index) {
  return event("content_block_stop", "\"index\":" + std::to_string(index));
}

const std::string kEndUsage =
    R"("usage":{"input_tokens":4,"cache_creation_input_tokens":0,"cache_read_input_tokens":8,)"
    R"("output_tokens":7,"output_tokens_details":{"thinking_tokens":3}})";

TEST(MessageShape, EventsOfOneBlockAfterTheOther) {
  EXPECT_EQ(
      answer(facts(true), {.kind = FinishKind::kCalls, .stop_string = {}}),
      event("message_start",
            R"("message":{"id":"msg_1","type":"message","role":"assistant","model":"m",)"
            R"("content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":4,)"
            R"("cache_creation_input_tokens":0,"cache_read_input_tokens":8,"output_tokens":0,)"
            R"("output_tokens_details":{"thinking_tokens":0}}})") +
          start(0, R"("type":"thinking","thinking":"","signature":"")") +
          delta(0, R"("type":"thinking_delta","thinking":"Hm")") +
          delta(0, R"("type":"thinking_delta","thinking":"m.")") +
          delta(0, R"("type":"signature_delta","signature":"")") + stop(0) +
          start(1, R"("type":"text","text":"")") +
          delta(1, R"("type":"text_delta","text":"So \"")") +
          delta(1, R"("type":"text_delta","text":"it\" is.")") + stop(1) +
          start(2, R"("type":"tool_use","id":"toolu_1","name":"add","input":{})") +
          delta(2, R"("type":"input_json_delta","partial_json":"{\"a\":")") +
          delta(2, R"("type":"input_json_delta","partial_json":"1}")") + stop(2) +
          start(3, R"("type":"tool_use","id":"toolu_2","name":"now","input":{})") + stop(3) +
          start(4, R"("type":"text","text":"")") +
          delta(4, R"("type":"text_delta","text":"Done.")") + stop(4) +
          event("message_delta",
                R"("delta":{"stop_reason":"tool_use","stop_sequence":null},)" + kEndUsage) +
          event("message_stop", ""));
}

TEST(MessageShape, AWholeMessageHasTheSameBlocks) {
  EXPECT_EQ(answer(facts(false), {.kind = FinishKind::kStop, .stop_string = "END"}),
            R"({"id":"msg_1","type":"message","role":"assistant","model":"m","content":[)"
            R"({"type":"thinking","thinking":"Hmm.","signature":""},)"
            R"({"type":"text","text":"So \"it\" is."},)"
            R"({"type":"tool_use","id":"toolu_1","name":"add","input":{"a":1}},)"
            R"({"type":"tool_use","id":"toolu_2","name":"now","input":{}},)"
            R"({"type":"text","text":"Done."}],)"
            R"("stop_reason":"stop_sequence","stop_sequence":"END",)" +
                kEndUsage + "}");
}

TEST(MessageShape, ThinkingThatNobodyAskedForIsNotShown) {
  for (const bool stream : {false, true}) {
    const std::string text = answer(facts(stream, false), {});
    EXPECT_EQ(text.find("\"thinking\""), std::string::npos) << text;
    EXPECT_NE(text.find("\"thinking_tokens\":3"), std::string::npos) << text;
    EXPECT_NE(text.find("\"end_turn\""), std::string::npos) << text;
  }
}

TEST(MessageShape, ACallThatWasCutIsNotMade) {
  const auto shape = make_message_shape(facts(false));
  std::string out;
  shape->begin(out, kBegin);
  shape->begin_call(out, {}, {0, "toolu_1", "add"});
  shape->call_arguments(out, {}, 0, "{\"a\": \"x");
  shape->finish(out, {}, {.kind = FinishKind::kLength, .stop_string = {}});
  shape->end(out, kEnd);
  ASSERT_TRUE(JsonDoc::parse(out)) << out;
  EXPECT_NE(out.find(R"("content":[],"stop_reason":"max_tokens")"), std::string::npos) << out;

  // What has been said in events stays said; the block ends.
  const auto events = make_message_shape(facts(true));
  out.clear();
  events->begin_call(out, {}, {0, "toolu_1", "add"});
  events->call_arguments(out, {}, 0, "{\"a\": \"x");
  events->finish(out, {}, {.kind = FinishKind::kLength, .stop_string = {}});
  EXPECT_TRUE(out.ends_with(stop(0))) << out;
}

TEST(MessageShape, ErrorsHaveTheStatusesThatClientsKnow) {
  const auto shown = [](const Error& error) {
    const std::string json = error_json(error, "req_1");
    const size_t type = json.find("\"error\":{\"type\":\"") + 17;
    return std::to_string(http_status(error)) + " " +
           json.substr(type, json.find('"', type) - type);
  };
  using enum ErrorCode;
  EXPECT_EQ(shown({kInvalid, "x"}), "400 invalid_request_error");
  EXPECT_EQ(shown({kUnsupported, "x"}), "400 invalid_request_error");
  EXPECT_EQ(shown({kUnauthorized, "x"}), "401 authentication_error");
  EXPECT_EQ(shown({kForbidden, "x"}), "403 permission_error");
  EXPECT_EQ(shown({kNotFound, "x"}), "404 not_found_error");
  EXPECT_EQ(shown({kMethod, "x"}), "405 invalid_request_error");
  EXPECT_EQ(shown({kTooLarge, "x"}), "413 request_too_large");
  EXPECT_EQ(shown({kOverloaded, "x", {}, "rate_limit_exceeded"}), "429 rate_limit_error");
  EXPECT_EQ(shown({kOverloaded, "x"}), "529 overloaded_error");
  EXPECT_EQ(shown({kUnavailable, "x"}), "529 overloaded_error");
  EXPECT_EQ(shown({kUnavailable, "x", {}, "request_timeout"}), "504 timeout_error");
  EXPECT_EQ(shown({kIo, "x"}), "500 api_error");
  EXPECT_EQ(
      error_json({kInvalid, "No \"x\"."}, "req_1"),
      R"({"type":"error","error":{"type":"invalid_request_error","message":"No \"x\"."},"request_id":"req_1"})");
  EXPECT_EQ(error_json({kContextLength, "Too long. " + prompt_too_long(9, 5)}, {}),
            R"({"type":"error","error":{"type":"invalid_request_error",)"
            R"("message":"prompt is too long: 9 tokens > 5 maximum"}})");
  std::string out;
  make_message_shape(facts(true))->fail(out, {kIo, "Broken."});
  EXPECT_EQ(out, event("error", R"("error":{"type":"api_error","message":"Broken."})"));
}

}  // namespace
}  // namespace weir::api::anthropic
