// The tools of /v1/responses: namespaces and custom tools as functions, what is left out, choices;
// and their calls on the way back.
#include "api/responses/tools.h"

#include <gtest/gtest.h>

#include "api/responses/request.h"

namespace weir::api::responses {
namespace {

Result<ResponsesRequest> parse(const std::string& members) {
  return parse_responses(
      R"({"input":"x",)" + members + "}",
      {.limits = {256}, .id = "resp_1", .owner = {}, .now = 0, .store = nullptr, .preparing = {}});
}

std::string tools_of(const std::string& tools) {
  const auto request = parse("\"tools\":" + tools);
  return request ? request->generate.tools : request.error().param + ": " + request.error().message;
}

constexpr std::string_view kInput =
    R"("parameters":{"type":"object","properties":{"input":{"type":"string"}},)"
    R"("required":["input"],"additionalProperties":false})";

// As Codex sends them with its default settings and an MCP server.
constexpr const char* kCodex = R"("tools":[
    {"type":"function","name":"exec_command","description":"Runs.","strict":false,
     "parameters":{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"]}},
    {"type":"namespace","name":"multi_agent_v1","description":"Sub-agents.","tools":[
      {"type":"function","name":"close_agent","description":"Closes.","strict":false,
       "parameters":{"type":"object"}},
      {"type":"function","name":"wait_agent","parameters":{"type":"object"}}]},
    {"type":"namespace","name":"mcp__sums","tools":[
      {"type":"function","name":"add","parameters":{"type":"object"}}]},
    {"type":"web_search","external_web_access":false}])";

TEST(ResponsesTools, NamespacesBecomePartsOfNames) {
  const auto request = parse(kCodex);
  ASSERT_TRUE(request) << request.error().message;
  const auto& functions = request->generate.functions;
  ASSERT_EQ(functions.size(), 4u);
  EXPECT_EQ(functions[0].name, "exec_command");
  EXPECT_EQ(functions[0].space, "");
  EXPECT_EQ(functions[1].name, "multi_agent_v1__close_agent");
  EXPECT_EQ(functions[1].space, "multi_agent_v1");
  EXPECT_EQ(functions[1].own_name, "close_agent");
  EXPECT_EQ(functions[3].name, "mcp__sums__add");
  EXPECT_NE(request->generate.tools.find(
                R"({"type":"function","function":{"name":"multi_agent_v1__close_agent",)"
                R"("description":"Sub-agents.\n\nCloses.","strict":false,)"
                R"("parameters":{"type":"object"}}},{"type":"function","function":{)"
                R"("name":"multi_agent_v1__wait_agent","parameters":{"type":"object"}}})"),
            std::string::npos)
      << request->generate.tools;
  ASSERT_EQ(request->generate.ignored.names().size(), 1u);
  EXPECT_EQ(request->generate.ignored.names()[0], "tools[3]: web_search");
}

TEST(ResponsesTools, OfAVendorAreLeftOutAndMisspelledOnesRefused) {
  for (const char* type :
       {"web_search", "web_search_preview_2025_03_11", "local_shell", "shell", "apply_patch",
        "image_generation", "code_interpreter", "file_search", "mcp", "computer_use_preview",
        "computer", "tool_search", "something_new"})
    EXPECT_EQ(tools_of(R"([{"type":")" + std::string(type) + R"(","container":{}}])"), "") << type;
  EXPECT_EQ(tools_of(R"([{"type":"functon","name":"f","parameters":{}}])"),
            "tools[0].type: Unsupported 'tools[0].type': expected \"function\", "
            "\"custom\" or \"namespace\", found \"functon\".");
  EXPECT_TRUE(tools_of(R"([{"type":"namespace","name":"a","tools":[{"type":"namespace","name":"b",
                           "tools":[]}]}])")
                  .starts_with("tools[0].tools[0].type: "));
  EXPECT_TRUE(tools_of(R"([{"type":"function","name":"a__b"},{"type":"namespace","name":"a",
                           "tools":[{"type":"function","name":"b"}]}])")
                  .starts_with("tools[1].tools[0].name: "));
}

TEST(ResponsesTools, CustomOnesAreFunctionsOfOneText) {
  EXPECT_EQ(tools_of(R"([{"type":"custom","name":"run","description":"Runs it."}])"),
            R"([{"type":"function","function":{"name":"run","description":"Runs it.",)" +
                std::string(kInput) + "}}]");
  const auto request =
      parse(R"("tools":[{"type":"custom","name":"sum","format":{"type":"grammar","syntax":"lark",)"
            R"("definition":"start: \"1+\" /[0-9]/"}},
         {"type":"custom","name":"odd","format":{"type":"grammar","syntax":"lark",)"
            R"("definition":"start: /a/i"}}])");
  ASSERT_TRUE(request) << request.error().message;
  const auto& functions = request->generate.functions;
  ASSERT_TRUE(functions[0].input);
  EXPECT_TRUE(functions[0].custom);
  EXPECT_EQ(functions[0].input->text, "start: \"1+\" /[0-9]/");
  EXPECT_NE(request->generate.tools.find(
                R"("description":"The input satisfies this lark grammar:\nstart: \"1+\" /[0-9]/")"),
            std::string::npos)
      << request->generate.tools;
  // What is not understood is shown to the model and binds nothing.
  EXPECT_FALSE(functions[1].input);
  ASSERT_EQ(request->generate.ignored.names().size(), 1u);
  EXPECT_TRUE(request->generate.ignored.names()[0].starts_with("tools[1].format.definition: "));
  EXPECT_TRUE(tools_of(R"([{"type":"custom","name":"x","format":{"type":"json"}}])")
                  .starts_with("tools[0].format.type: "));
}

TEST(ResponsesTools, ChoicesFindThem) {
  const auto chosen = [](const std::string& choice) {
    const auto request = parse(std::string(kCodex) + ",\"tool_choice\":" + choice);
    if (!request) return request.error().param;
    std::string text = std::to_string(static_cast<int>(request->generate.tool_choice));
    for (const std::string& name : request->generate.callable) text += " " + name;
    return text;
  };
  const auto is = [](ToolChoice choice) { return std::to_string(static_cast<int>(choice)); };
  const std::string named = is(ToolChoice::kNamed);
  EXPECT_EQ(chosen(R"({"type":"function","namespace":"mcp__sums","name":"add"})"),
            named + " mcp__sums__add");
  EXPECT_EQ(chosen(R"({"type":"function","name":"mcp__sums__add"})"), named + " mcp__sums__add");
  EXPECT_EQ(chosen(R"({"type":"function","name":"add"})"), named + " mcp__sums__add");
  EXPECT_EQ(chosen(R"({"type":"namespace","name":"multi_agent_v1"})"),
            is(ToolChoice::kRequired) + " multi_agent_v1__close_agent multi_agent_v1__wait_agent");
  EXPECT_EQ(chosen(R"({"type":"function","name":"none_such"})"), "tool_choice");
  // The vendor's own cannot be called: the model is free instead.
  EXPECT_EQ(chosen(R"({"type":"web_search"})"), is(ToolChoice::kAuto));
  EXPECT_EQ(chosen(R"({"type":"allowed_tools","mode":"required","tools":[{"type":"web_search"},
                       {"type":"function","name":"exec_command"}]})"),
            is(ToolChoice::kRequired) + " exec_command");
  EXPECT_EQ(chosen(R"({"type":"allowed_tools","mode":"required","tools":[{"type":"mcp"}]})"),
            is(ToolChoice::kNone));
  EXPECT_EQ(chosen(R"({"type":"nonsense"})"), "tool_choice.type");
}

TEST(ResponsesTools, CallsInTheInputAreTheModelsOwn) {
  const auto request = parse_responses(
      R"({"input":[{"role":"user","content":"x"},
          {"type":"function_call","call_id":"c1","namespace":"mcp__sums","name":"add",
           "arguments":"{\"a\":1}"},
          {"type":"custom_tool_call","call_id":"c2","name":"run","input":"say \"hi\"\n"},
          {"type":"function_call_output","call_id":"c1","output":"2"},
          {"type":"custom_tool_call_output","call_id":"c2","output":"hi"}]})",
      {.limits = {256}, .id = "resp_1", .owner = {}, .now = 0, .store = nullptr, .preparing = {}});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->generate.messages,
            R"([{"role":"user","content":"x"},{"role":"assistant","content":"","tool_calls":[)"
            R"({"id":"c1","type":"function","function":{"name":"mcp__sums__add",)"
            R"("arguments":{"a":1}}},{"id":"c2","type":"function","function":{"name":"run",)"
            R"("arguments":{"input":"say \"hi\"\n"}}}]},)"
            R"({"role":"tool","content":"2","tool_call_id":"c1"},)"
            R"({"role":"tool","content":"hi","tool_call_id":"c2"}])");
}

// Codex sends them so to models that it knows.
TEST(ResponsesTools, ItemsOfTheInputBringMore) {
  const auto request = parse_responses(
      R"({"tools":[{"type":"function","name":"f"}],"input":[
          {"type":"additional_tools","role":"developer","tools":[{"type":"namespace",
           "name":"functions","tools":[{"type":"custom","name":"exec"}]},{"type":"tool_search"}]},
          {"type":"message","role":"user","content":"x"}],
          "tool_choice":{"type":"custom","name":"exec"}})",
      {.limits = {256}, .id = "resp_1", .owner = {}, .now = 0, .store = nullptr, .preparing = {}});
  ASSERT_TRUE(request) << request.error().message;
  ASSERT_EQ(request->generate.functions.size(), 2u);
  EXPECT_EQ(request->generate.functions[1].name, "functions__exec");
  EXPECT_EQ(request->generate.callable, std::vector<std::string>{"functions__exec"});
  EXPECT_EQ(request->generate.messages, R"([{"role":"user","content":"x"}])");
  EXPECT_EQ(request->tools, R"([{"type":"function","name":"f"}])");
  ASSERT_EQ(request->generate.ignored.names().size(), 1u);
  EXPECT_EQ(request->generate.ignored.names()[0], "input[0].tools[1]: tool_search");
}

TEST(ResponsesTools, InputsComeOutOfArguments) {
  EXPECT_EQ(custom_input(custom_arguments("a \"b\"\n\xc3\xa9")), "a \"b\"\n\xc3\xa9");
  EXPECT_EQ(custom_input(R"({"input": "ab)"), "ab");
  EXPECT_EQ(custom_input(R"({"input": "ab\u00)"), "ab");
  EXPECT_EQ(custom_input(R"({"input": "ab\)"), "ab");
  EXPECT_EQ(custom_input(R"({"patch": "x"})"), R"({"patch": "x"})");
  EXPECT_EQ(custom_input(""), "");
}

}  // namespace
}  // namespace weir::api::responses
