// What Anthropic's endpoints accept and refuse, and what templates are given of it.
#include "api/anthropic/message_request.h"

#include <gtest/gtest.h>

namespace weir::api::anthropic {
namespace {

constexpr RequestLimits kLimits{1000};

Result<GenerateRequest> parse(const std::string& more,
                              const std::string& messages = R"([{"role":"user","content":"Hi"}])") {
  return parse_message_request(R"({"model":"m","max_tokens":9,"messages":)" + messages +
                                   (more.empty() ? "" : "," + more) + "}",
                               kLimits);
}

// The conversation that a template is given.
std::string turns(const std::string& messages, const std::string& more = {}) {
  const auto request = parse(more, messages);
  return request ? request->messages : request.error().message;
}

void expect_refused(const Result<GenerateRequest>& result, const std::string& param,
                    ErrorCode code = ErrorCode::kInvalid) {
  ASSERT_FALSE(result.has_value()) << param;
  EXPECT_EQ(result.error().param, param) << result.error().message;
  EXPECT_EQ(result.error().code, code) << result.error().message;
}

TEST(MessageRequest, ReadsEveryField) {
  const auto request = parse(R"(
      "system":"Be brief.","temperature":0.5,"top_p":0.9,"top_k":40,"stop_sequences":["a","","b"],
      "stream":true,"thinking":{"type":"enabled","budget_tokens":1024},
      "tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"strict":true,
                "cache_control":{"type":"ephemeral"}}],
      "tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true},
      "output_config":{"effort":"max"},"metadata":{"user_id":"u"},"service_tier":"auto",
      "context_management":{"edits":[]},"unknown":[1])");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->model, "m");
  EXPECT_EQ(request->token_limit(), 9);
  EXPECT_EQ(request->temperature, 0.5);
  EXPECT_EQ(request->top_p, 0.9);
  EXPECT_EQ(request->top_k, 40);
  EXPECT_EQ(request->stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(request->stream);
  EXPECT_EQ(request->enable_thinking, true);
  EXPECT_EQ(request->reasoning_budget, 1024);
  EXPECT_EQ(request->reasoning_effort, "high");
  ASSERT_EQ(request->functions.size(), 1u);
  EXPECT_EQ(request->functions[0].name, "f");
  EXPECT_EQ(request->functions[0].parameters, R"({"type":"object"})");
  EXPECT_TRUE(request->functions[0].strict);
  EXPECT_EQ(
      request->tools,
      R"([{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}])");
  EXPECT_EQ(request->tool_choice, ToolChoice::kNamed);
  EXPECT_EQ(request->callable, std::vector<std::string>{"f"});
  EXPECT_FALSE(request->parallel_tool_calls);
  EXPECT_EQ(request->messages,
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}])");
}

TEST(MessageRequest, LeavesOutWhatTheBodyLeavesOut) {
  const auto request = parse("");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_FALSE(request->temperature || request->top_p || request->top_k || request->grammar);
  EXPECT_FALSE(request->stream || request->enable_thinking || request->continue_final_message);
  EXPECT_EQ(request->thinking_unasked, false);
  EXPECT_TRUE(request->parallel_tool_calls);
  EXPECT_TRUE(request->functions.empty());
}

TEST(MessageRequest, NeedsAnEndAndAConversation) {
  expect_refused(parse_message_request(R"({"messages":[{"role":"user","content":"x"}]})", kLimits),
                 "max_tokens");
  expect_refused(parse_message_request(R"({"max_tokens":1})", kLimits), "messages");
  expect_refused(parse("", "[]"), "messages");
  expect_refused(parse(R"("temperature":1.5)"), "temperature");
  expect_refused(parse(R"("top_k":-1)"), "top_k");
  expect_refused(parse(R"("stop_sequences":"x")"), "stop_sequences");
  expect_refused(parse(R"("thinking":{"type":"on"})"), "thinking.type");
  expect_refused(parse(R"("thinking":{"type":"enabled","budget_tokens":-1})"),
                 "thinking.budget_tokens");
  expect_refused(parse(R"("mcp_servers":[{}])"), "mcp_servers", ErrorCode::kUnsupported);
  // Only an answer has an end.
  EXPECT_TRUE(parse_count_request(R"({"messages":[{"role":"user","content":"x"}]})", kLimits));
}

TEST(MessageRequest, SystemIsATextOrBlocks) {
  EXPECT_EQ(turns(R"([{"role":"user","content":"x"}])",
                  R"("system":[{"type":"text","text":"A","cache_control":{"type":"ephemeral"}},
                               {"type":"text","text":"B"}])"),
            R"([{"role":"system","content":"A\nB"},{"role":"user","content":"x"}])");
  EXPECT_EQ(turns(R"([{"role":"user","content":"x"}])", R"("system":"")"),
            R"([{"role":"user","content":"x"}])");
  // Later instructions stay where they are; those at the beginning join the first.
  EXPECT_EQ(
      turns(R"([{"role":"system","content":"B"},{"role":"user","content":"x"},
                {"role":"system","content":[{"type":"text","text":"C"}]}])",
            R"("system":"A")"),
      R"([{"role":"system","content":"A\nB"},{"role":"user","content":"x"},{"role":"system","content":"C"}])");
  expect_refused(parse(R"("system":[{"type":"image"}])"), "system[0].type",
                 ErrorCode::kUnsupported);
  expect_refused(parse(R"("system":5)"), "system");
}

TEST(MessageRequest, WhatDiffersInEveryRequestIsNotPartOfThePrompt) {
  const std::string kept =
      R"([{"role":"system","content":"You are."},{"role":"user","content":"x"}])";
  const std::string user = R"([{"role":"user","content":"x"}])";
  EXPECT_EQ(turns(user, R"("system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"},
                                     {"type":"text","text":"You are."}])"),
            kept);
  EXPECT_EQ(turns(user, R"("system":"x-anthropic-billing-header: cch=2;\nYou are.")"), kept);
  // Elsewhere it is what somebody has written.
  EXPECT_NE(turns(R"([{"role":"user","content":"x-anthropic-billing-header: a"}])").find("header"),
            std::string::npos);
}

TEST(MessageRequest, ResultsOfToolsAreTurnsOfTheirOwn) {
  EXPECT_EQ(turns(R"([
        {"role":"user","content":"Weather?"},
        {"role":"assistant","content":[
          {"type":"thinking","thinking":"Ask.","signature":"s"},
          {"type":"redacted_thinking","data":"?"},
          {"type":"text","text":"I look."},
          {"type":"tool_use","id":"t1","name":"now","input":{"a":[1]}},
          {"type":"tool_use","id":"t2","name":"later","input":{}}]},
        {"role":"user","content":[
          {"type":"tool_result","tool_use_id":"t1","content":"Sun"},
          {"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[
            {"type":"text","text":"No"},{"type":"text","text":"data"}]},
          {"type":"tool_result","tool_use_id":"t9"},
          {"type":"text","text":"And?"}]},
        {"role":"user","content":[{"type":"text","text":"Well?","cache_control":null}]}])"),
            R"([{"role":"user","content":"Weather?"},)"
            R"({"role":"assistant","content":"I look.","reasoning_content":"Ask.","tool_calls":[)"
            R"({"id":"t1","type":"function","function":{"name":"now","arguments":{"a":[1]}}},)"
            R"({"id":"t2","type":"function","function":{"name":"later","arguments":{}}}]},)"
            R"({"role":"tool","content":"Sun","name":"now","tool_call_id":"t1"},)"
            R"({"role":"tool","content":"Error: No\ndata","name":"later","tool_call_id":"t2"},)"
            R"({"role":"tool","content":"","tool_call_id":"t9"},)"
            R"({"role":"user","content":"And?\nWell?"}])");
}

TEST(MessageRequest, TurnsOfOneRoleBecomeOne) {
  EXPECT_EQ(turns(R"([{"role":"user","content":"a"},{"role":"user","content":"b"},
                      {"role":"assistant","content":"c"},{"role":"assistant","content":[]},
                      {"role":"assistant","content":"d"},{"role":"user","content":"e"}])"),
            R"([{"role":"user","content":"a\nb"},{"role":"assistant","content":"c\nd"},)"
            R"({"role":"user","content":"e"}])");
}

TEST(MessageRequest, DocumentsOfTextAreText) {
  EXPECT_EQ(turns(R"([{"role":"user","content":[
              {"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"D"}},
              {"type":"document","source":{"type":"content","content":[{"type":"text","text":"E"}]}},
              {"type":"search_result","source":"S","title":"U","content":[{"type":"text","text":"F"}]},
              {"type":"text","text":"?"}]}])"),
            R"([{"role":"user","content":"T\nD\nE\nU\nS\nF\n?"}])");
  expect_refused(parse("", R"([{"role":"user","content":[{"type":"document","source":
                              {"type":"base64","media_type":"application/pdf","data":""}}]}])"),
                 "messages[0].content[0].source.type", ErrorCode::kUnsupported);
}

TEST(MessageRequest, ALastTurnOfTheAssistantsIsContinued) {
  const auto request = parse("", R"([{"role":"user","content":"a"},
                                     {"role":"assistant","content":"The answer is ("}])");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_TRUE(request->continue_final_message);
  EXPECT_EQ(request->last_role, "assistant");
  EXPECT_EQ(request->last_content, "The answer is (");
  // Where there is nothing to continue, it is answered.
  const auto empty =
      parse("", R"([{"role":"user","content":"a"},{"role":"assistant","content":[]}])");
  ASSERT_TRUE(empty) << empty.error().message;
  EXPECT_FALSE(empty->continue_final_message);
  EXPECT_EQ(empty->messages, R"([{"role":"user","content":"a"}])");
}

TEST(MessageRequest, ImagesStandWhereTheyAreShown) {
  const std::string image =
      R"({"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}})";
  const auto request = parse("", R"([{"role":"user","content":[{"type":"text","text":"a"},)" + image +
                                     R"(]},{"role":"assistant","content":[{"type":"tool_use",)"
                                     R"("id":"i","name":"f","input":{}}]},{"role":"user","content":)"
                                     R"([{"type":"tool_result","tool_use_id":"i","content":[)" +
                                     image + R"(],"is_error":true}]}])");
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->media.size(), 2u);
  EXPECT_EQ(request->media[0].field, "messages[0].content[1].source.data");
  EXPECT_EQ(request->media[1].field, "messages[2].content[0].content[0].source.data");
  EXPECT_NE(request->messages.find(
                R"("content":[{"type":"text","text":"a"},{"type":"image"}])"),
            std::string::npos);
  EXPECT_NE(request->messages.find(
                R"("content":[{"type":"text","text":"Error: "},{"type":"image"}])"),
            std::string::npos)
      << request->messages;
}

TEST(MessageRequest, ErrorsNameTheirPlace) {
  const auto image = R"([{"role":"user","content":[{"type":"text","text":"?"},{"type":"image"}]}])";
  expect_refused(parse("", image), "messages[0].content[1].source");
  const auto source = [](const std::string& members) {
    return R"([{"role":"user","content":[{"type":"image","source":{)" + members + "}}]}]";
  };
  expect_refused(parse("", source(R"("type":"file","file_id":"f")")),
                 "messages[0].content[0].source.type", ErrorCode::kUnsupported);
  expect_refused(parse("", source(R"("type":"base64","media_type":"application/pdf","data":"")")),
                 "messages[0].content[0].source.media_type", ErrorCode::kUnsupported);
  expect_refused(parse("", source(R"("type":"url","url":"ftp://a")")),
                 "messages[0].content[0].source.url");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"([5])", "messages[0]"},
      {R"([{"content":"x"}])", "messages[0].role"},
      {R"([{"role":"tool","content":"x"}])", "messages[0].role"},
      {R"([{"role":"user"}])", "messages[0].content"},
      {R"([{"role":"user","content":[]}])", "messages[0].content"},
      {R"([{"role":"user","content":7}])", "messages[0].content"},
      {R"([{"role":"user","content":[{"text":"x"}]}])", "messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text"},
      {R"([{"role":"user","content":[{"type":"tool_result","content":"x"}]}])",
       "messages[0].content[0].tool_use_id"},
      {R"([{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"f","input":"{}"}]}])",
       "messages[0].content[0].input"},
  };
  for (const auto& [messages, param] : cases) expect_refused(parse("", messages), param);
  expect_refused(
      parse("", R"([{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":
                    [{"type":"image"}]}]}])"),
      "messages[0].content[0].content[0].source");
  expect_refused(parse("", R"([{"role":"assistant","content":[{"type":"server_tool_use"}]}])"),
                 "messages[0].content[0].type", ErrorCode::kUnsupported);
}

TEST(MessageRequest, ToolsThatAServerRunsAreRefusedByName) {
  const auto refused = parse(R"("tools":[{"type":"web_search_20250305","name":"web_search"}])");
  expect_refused(refused, "tools[0].type", ErrorCode::kUnsupported);
  EXPECT_NE(refused.error().message.find("web_search_20250305"), std::string::npos);
  EXPECT_TRUE(parse(R"("tools":[{"type":"custom","name":"f","input_schema":{}}])"));
  expect_refused(parse(R"("tools":[{"name":"f"}])"), "tools[0].input_schema");
  expect_refused(parse(R"("tools":[{"name":"a b","input_schema":{}}])"), "tools[0].name");
  expect_refused(parse(R"("tool_choice":{"type":"tool","name":"g"})"), "tool_choice");
  expect_refused(parse(R"("tool_choice":{"type":"required"})"), "tool_choice.type");
  const std::string tools = R"("tools":[{"name":"f","input_schema":{}}],"tool_choice":)";
  EXPECT_TRUE(parse(tools + R"({"type":"any"})")->must_call());
  EXPECT_FALSE(parse(tools + R"({"type":"none"})")->may_call());
  EXPECT_EQ(parse(tools + R"({"type":"auto"})")->tool_choice, ToolChoice::kAuto);
}

TEST(MessageRequest, ASchemaBindsTheAnswer) {
  for (const char* text :
       {R"("output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}})",
        R"("output_format":{"type":"json_schema","schema":{"type":"object"}})"}) {
    const auto request = parse(text);
    ASSERT_TRUE(request) << request.error().message;
    ASSERT_TRUE(request->grammar);
    EXPECT_EQ(request->grammar->text, R"({"type":"object"})");
  }
  expect_refused(parse(R"("output_config":{"format":{"type":"text"}})"),
                 "output_config.format.type", ErrorCode::kUnsupported);
}

TEST(MessageRequest, TakesAnExplicitNullForAbsent) {
  for (const FieldDoc& field : message_fields()) {
    if (field.required) continue;
    EXPECT_TRUE(parse("\"" + std::string(field.name) + "\":null")) << field.name;
  }
}

}  // namespace
}  // namespace weir::api::anthropic
