// Calls of functions over a socket and through the real engine, whose model would say something
// else: what is forced, what is refused, how it looks, and what a request's fields mean.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "api/test_api.h"

namespace weir::api {
namespace {

constexpr const char* kTools =
    R"(,"tools":[{"type":"function","function":{"name":"get_time","strict":true,"parameters":)"
    R"({"type":"object","properties":{"zone":{"const":"UTC"}},"required":["zone"],)"
    R"("additionalProperties":false}}},{"type":"function","function":{"name":"ping"}}])";

std::string at(const net::RawClient::Response& answer, const char* pointer) {
  const auto doc = JsonDoc::parse(answer.body);
  if (!doc) return "not JSON: " + answer.body;
  JsonValue value;
  if (doc->root().at_pointer(pointer).get(value) != simdjson::SUCCESS) return "absent";
  std::string text;
  JsonWriter(text).value(value);
  return text;
}

// Whitespace is the model's own to choose.
bool is_time(const std::string& arguments) {
  const auto outer = JsonDoc::parse(arguments);
  std::string_view text;
  if (!outer || outer->root().get(text) != simdjson::SUCCESS) return false;
  const auto doc = JsonDoc::parse(text);
  std::string_view zone;
  return doc && doc->root().at_pointer("/zone").get(zone) == simdjson::SUCCESS && zone == "UTC";
}

constexpr const char* kCall = "/choices/0/message/tool_calls/0";

TEST(Tools, ForcedCallsAreValidInEveryFormat) {
  for (const char* format : {"auto", "none", "hermes", "llama3", "mistral", "deepseek_v31",
                             "kimi_k2", "qwen3_coder", "gemma4", "harmony", "glm", "pythonic"}) {
    TestOptions options;
    options.config.tool_parser = format;
    TestApi server(options);
    const auto answer = server.chat(
        std::string(R"(,"tool_choice":{"type":"function","function":{"name":"get_time"}})") +
        kTools);
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(at(answer, "/choices/0/finish_reason"), "\"tool_calls\"") << format << answer.body;
    EXPECT_EQ(at(answer, "/choices/0/message/content"), "null") << answer.body;
    EXPECT_EQ(at(answer, "/choices/0/message/tool_calls/0/type"), "\"function\"");
    EXPECT_EQ(at(answer, "/choices/0/message/tool_calls/0/function/name"), "\"get_time\"");
    EXPECT_TRUE(is_time(at(answer, "/choices/0/message/tool_calls/0/function/arguments")))
        << format << answer.body;
    EXPECT_EQ(at(answer, "/choices/0/message/tool_calls/1"), "absent");
    const size_t id_bytes = std::string_view(format) == "mistral" ? 9 : 5 + 32;
    if (std::string_view(format) != "kimi_k2") {
      EXPECT_EQ(at(answer, "/choices/0/message/tool_calls/0/id").size(), id_bytes + 2) << format;
    }
  }
}

TEST(Tools, OlderNamesGiveOlderAnswers) {
  TestApi server;
  const auto answer = server.chat(
      R"(,"functions":[{"name":"ping","parameters":{"type":"object","properties":{}}}],)"
      R"("function_call":{"name":"ping"})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(at(answer, "/choices/0/finish_reason"), "\"function_call\"");
  EXPECT_EQ(at(answer, "/choices/0/message/function_call/name"), "\"ping\"");
  EXPECT_EQ(at(answer, kCall), "absent");
}

TEST(Tools, WithoutCallsAnswersAreAsEver) {
  TestApi server;
  const std::string plain = at(server.chat(), "/choices/0/message");
  for (const std::string more : {R"(,"tool_choice":"none")", R"(,"tool_choice":"auto")", ""})
    EXPECT_EQ(at(server.chat(more + kTools), "/choices/0/message"), plain) << more;
  EXPECT_EQ(at(server.chat(R"(,"tools":[],"tool_choice":"required")"), "/choices/0/message"),
            plain);
}

TEST(Tools, ThatATemplateLeavesOutAreDescribedInAMessage) {
  TestOptions options;
  options.chat_template =
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}[assistant]";
  TestApi server(options);
  const auto prompt = [&](const std::string& more) {
    return std::stoi(at(server.chat(more), "/usage/prompt_tokens"));
  };
  EXPECT_GT(prompt(kTools), prompt("") + 300);
  EXPECT_EQ(prompt(std::string(R"(,"tool_choice":"none")") + kTools), prompt(""));
  const auto answer =
      server.chat(std::string(R"(,"tool_choice":{"type":"function","function":{"name":)"
                              R"("get_time"}})") +
                  kTools);
  EXPECT_TRUE(is_time(at(answer, "/choices/0/message/tool_calls/0/function/arguments")))
      << answer.body;
  // The history, too.
  const auto history = server.post(
      "/v1/chat/completions",
      R"({"model":"m","messages":[{"role":"user","content":"Hi"},{"role":"assistant","tool_calls":)"
      R"([{"id":"c","type":"function","function":{"name":"f","arguments":"{\"city\":\"Rome\"}"}}]},)"
      R"({"role":"tool","tool_call_id":"c","content":"dry"}],"max_tokens":1})");
  EXPECT_EQ(
      at(history, "/usage/prompt_tokens"),
      std::to_string(std::string("[user]Hi[assistant]<tool_call>\n{\"name\": \"f\", \"arguments\": "
                                 "{\"city\":\"Rome\"}}\n</tool_call>[tool]dry[assistant]")
                         .size()))
      << history.body;
}

TEST(Tools, RequiredWithoutToolsIsNamed) {
  TestApi server;
  const auto answer = server.chat(R"(,"tool_choice":"required")");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("x-weir-ignored"), "tool_choice");
}

TEST(Tools, RefusesWhatCannotBe) {
  TestApi server;
  const auto param = [&](const std::string& more) {
    const auto answer = server.chat(more);
    EXPECT_EQ(answer.status, 400) << answer.body;
    return at(answer, "/error/param");
  };
  EXPECT_EQ(param(R"(,"tool_choice":{"type":"function","function":{"name":"f"}})"),
            "\"tool_choice\"");
  EXPECT_EQ(param(std::string(R"(,"tool_choice":{"type":"function","name":"f"})") + kTools),
            "\"tool_choice\"");
  EXPECT_EQ(param(std::string(R"(,"tool_choice":{"type":"custom","name":"f"})") + kTools),
            "\"tool_choice.type\"");
  EXPECT_EQ(param(std::string(R"(,"tool_choice":{"type":"allowed_tools","allowed_tools":)") +
                  R"({"mode":"auto","tools":[]}})" + kTools),
            "\"tool_choice.allowed_tools.tools\"");
  EXPECT_EQ(param(std::string(R"(,"functions":[{"name":"f"}])") + kTools), "\"functions\"");
  EXPECT_EQ(param(R"(,"tools":[{"type":"function","function":{"name":"a\"b"}}])"),
            "\"tools[0].function.name\"");
  EXPECT_EQ(param(R"(,"tool_choice":"required","tools":[{"type":"function","function":{"name":"f",)"
                  R"("strict":true,"parameters":{"type":"object","dependentSchemas":{"a":{}}}}}])"),
            "\"tools\"");
}

// One keyword that cannot be enforced, beside others that can.
constexpr const char* kHard =
    R"({"type":"object","properties":{"n":{"const":7},"a":{"type":"array","uniqueItems":true,)"
    R"("items":{"enum":[1,2,3,4,5,6,7,8,9]},"maxItems":2}},"required":["n"],)"
    R"("dependentSchemas":{"n":{}}})";

TEST(Tools, OnlyWhatCannotBeEnforcedIsLeftOutAndNamed) {
  TestApi server;
  const std::string function = R"({"name":"f","parameters":)" + std::string(kHard) + "}";
  const std::string tools = R"(,"tools":[{"type":"function","function":)" + function + "}]";
  const std::string chat = R"("messages":[{"role":"user","content":"Hi"}],"max_tokens":200)";
  const struct {
    const char* path;
    std::string body, place, field;
  } requests[] = {
      {"/v1/chat/completions", chat + tools + R"(,"tool_choice":"required")",
       "/choices/0/message/tool_calls/0/function/arguments", "tools[0].function.parameters"},
      {"/v1/chat/completions",
       chat + tools + R"(,"tool_choice":{"type":"function","function":{"name":"f"}})",
       "/choices/0/message/tool_calls/0/function/arguments", "tools[0].function.parameters"},
      {"/v1/chat/completions",
       chat + R"(,"functions":[)" + function + R"(],"function_call":{"name":"f"})",
       "/choices/0/message/function_call/arguments", "functions[0].parameters"},
      {"/v1/responses",
       R"("input":"Hi","max_output_tokens":200,"tool_choice":"required","tools":[{"type":"function",)" +
           function.substr(1) + "]",
       "/output/0/arguments", "tools[0].parameters"},
      {"/v1/messages",
       chat + R"(,"tool_choice":{"type":"any"},"tools":[{"name":"f","input_schema":)" + kHard +
           "}]",
       "/content/0/input", "tools[0].input_schema"},
  };
  for (const auto& [path, body, place, field] : requests) {
    for (int time = 0; time < 2; ++time) {  // The second grammar is a cached one.
      const auto answer = server.post(path, R"({"model":"m",)" + body + "}");
      ASSERT_EQ(answer.status, 200) << path << answer.body;
      EXPECT_EQ(answer.header("x-weir-ignored"), field + ": dependentSchemas") << path;
      std::string arguments = at(answer, place.c_str());
      const auto doc = JsonDoc::parse(arguments);
      ASSERT_TRUE(doc) << arguments;
      std::string_view text;
      if (doc->root().get(text) == simdjson::SUCCESS) arguments = std::string(text);
      const auto parsed = JsonDoc::parse(arguments);
      ASSERT_TRUE(parsed) << arguments;
      int64_t n = 0;
      EXPECT_EQ(parsed->root().at_pointer("/n").get(n), simdjson::SUCCESS) << answer.body;
      EXPECT_EQ(n, 7);
    }
  }
  const std::string strict = tools.substr(0, tools.size() - 3) + R"(,"strict":true}}])";
  const auto refused = server.chat(strict + R"(,"tool_choice":"required")");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("'dependentSchemas'"), std::string::npos) << refused.body;
}

TEST(Tools, StreamsACallInPieces) {
  TestApi server;
  const auto answer = server.chat(
      std::string(
          R"(,"stream":true,"tool_choice":{"type":"function","function":{"name":"get_time"}})") +
      kTools);
  EXPECT_EQ(answer.status, 200);
  const std::string& events = answer.body;
  const auto count = [&](std::string_view text) {
    size_t found = 0;
    for (size_t i = 0; (i = events.find(text, i)) != std::string::npos; ++i) ++found;
    return found;
  };
  EXPECT_EQ(count(R"("type":"function")"), 1u) << events;
  EXPECT_EQ(count(R"("name":"get_time")"), 1u);
  EXPECT_EQ(count(R"("id":"call_)"), 1u);
  EXPECT_GT(count(R"("tool_calls":[{"index":0,"function":{"arguments":)"), 5u);
  EXPECT_EQ(count(R"("finish_reason":"tool_calls")"), 1u);
}

}  // namespace
}  // namespace weir::api
