// Answers bound to a form, over a socket and through the real engine, whose model would say
// something else.
#include <gtest/gtest.h>

#include "api/test_api.h"

namespace weir::api {
namespace {

std::string text_of(const net::RawClient::Response& answer) {
  const auto doc = JsonDoc::parse(answer.body);
  if (!doc) return "not JSON: " + answer.body;
  std::string_view text;
  if (doc->root().at_pointer("/choices/0/message/content").get(text) != simdjson::SUCCESS &&
      doc->root().at_pointer("/choices/0/text").get(text) != simdjson::SUCCESS)
    return "no text: " + answer.body;
  return std::string(text);
}

std::string finish_of(const net::RawClient::Response& answer) {
  const size_t at = answer.body.find("finish_reason\":\"");
  if (at == std::string::npos) return "none: " + answer.body;
  return answer.body.substr(at + 16, answer.body.find('"', at + 16) - at - 16);
}

constexpr const char* kPerson =
    R"({"type":"object","properties":{"name":{"const":"Ada"},"age":{"enum":[36]}},)"
    R"("required":["name","age"]})";

TEST(StructuredOutput, EveryFieldBindsTheAnswer) {
  TestApi server;
  const std::string schema = kPerson;
  for (const std::string& more :
       {R"(,"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":)" + schema +
            "}}",
        R"(,"guided_json":)" + schema, R"(,"json_schema":)" + schema,
        R"(,"structured_outputs":{"json":)" + schema + "}"}) {
    const auto answer = server.chat(more);
    ASSERT_EQ(answer.status, 200) << answer.body;
    const auto doc = JsonDoc::parse(text_of(answer));
    ASSERT_TRUE(doc) << text_of(answer);
    EXPECT_EQ(doc->root().at_pointer("/name").get_string().value(), "Ada");
    EXPECT_EQ(doc->root().at_pointer("/age").get_int64().value(), 36);
    EXPECT_EQ(finish_of(answer), "stop");
  }
  EXPECT_EQ(text_of(server.chat(R"(,"guided_choice":["left"])")), "left");
  EXPECT_EQ(text_of(server.chat(R"(,"guided_regex":"x{3}")")), "xxx");
  EXPECT_EQ(text_of(server.chat(R"(,"guided_grammar":"root ::= \"a\" \"b\"")")), "ab");
  EXPECT_EQ(text_of(server.chat(R"(,"grammar":"root ::= \"c\"")")), "c");
  EXPECT_EQ(text_of(server.complete(R"(,"guided_choice":["no"])")), "no");
}

TEST(StructuredOutput, StrictFalseLeavesOutWhatCannotBeEnforced) {
  TestApi server;
  const std::string schema = std::string(kPerson).insert(1, R"("dependentSchemas":{},)");
  const auto asked = [&](const char* strict) {
    return server.chat(R"(,"response_format":{"type":"json_schema","json_schema":{"name":"p")" +
                       std::string(strict) + R"(,"schema":)" + schema + "}}");
  };
  for (const char* strict : {"", R"(,"strict":null)", R"(,"strict":true)"}) {
    const auto answer = asked(strict);
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_NE(answer.body.find("'dependentSchemas'"), std::string::npos) << answer.body;
  }
  const auto answer = asked(R"(,"strict":false)");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.header("x-weir-ignored"),
            "response_format.json_schema.schema: dependentSchemas");
  const auto doc = JsonDoc::parse(text_of(answer));
  ASSERT_TRUE(doc) << text_of(answer);
  EXPECT_EQ(doc->root().at_pointer("/age").get_int64().value(), 36);
  const auto response = server.post(
      "/v1/responses", R"({"model":"m","input":"Hi","text":{"format":{"type":"json_schema",)"
                       R"("name":"p","strict":false,"schema":)" +
                           schema + "}}}");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.header("x-weir-ignored"), "text.format.schema: dependentSchemas");
  EXPECT_EQ(asked(R"(,"strict":"no")").status, 400);
}

// The model wants to say "hey \xc3\xa9!" and then end.
TEST(StructuredOutput, WhatTheModelWantsIsTakenWhereItIsAllowed) {
  TestApi server;
  EXPECT_EQ(text_of(server.chat(R"(,"guided_regex":"[a-z]+ .!")")), "hey \xc3\xa9!");
  EXPECT_EQ(text_of(server.chat(R"(,"guided_choice":["abc","hey there","hello"])")), "hey there");
  const auto json = server.chat(R"(,"response_format":{"type":"json_object"},"max_tokens":40)");
  EXPECT_TRUE(text_of(json).starts_with("{")) << json.body;
}

TEST(StructuredOutput, ALengthLimitLeavesAValidPrefix) {
  TestApi server;
  const auto answer = server.chat(R"(,"guided_choice":["abcdefgh"],"max_tokens":3)");
  EXPECT_EQ(text_of(answer), "abc");
  EXPECT_EQ(finish_of(answer), "length");
  EXPECT_EQ(finish_of(server.chat(R"(,"guided_choice":["abc"],"max_tokens":3)")), "stop");
}

TEST(StructuredOutput, StreamsAndChoicesAreBoundEachOnItsOwn) {
  TestApi server;
  const auto stream = server.chat(R"(,"stream":true,"guided_choice":["ab"])");
  EXPECT_NE(stream.body.find(R"("content":"a")"), std::string::npos) << stream.body;
  EXPECT_NE(stream.body.find(R"("finish_reason":"stop")"), std::string::npos);
  const auto many = server.post(
      "/v1/chat/completions",
      R"({"messages":[{"role":"user","content":"Hi"}],"n":4,"temperature":1.5,"seed":3,)"
      R"("guided_regex":"[0-9]{8}-[a-f]{8}"})");
  const auto doc = JsonDoc::parse(many.body);
  ASSERT_TRUE(doc) << many.body;
  std::set<std::string> texts;
  for (int i = 0; i < 4; ++i) {
    const std::string path = "/choices/" + std::to_string(i) + "/message/content";
    const std::string text(doc->root().at_pointer(path).get_string().value());
    EXPECT_EQ(text.size(), 17u) << text;
    EXPECT_EQ(text.find_first_not_of("0123456789"), 8u) << text;
    texts.insert(text);
  }
  EXPECT_EQ(texts.size(), 4u);
}

TEST(StructuredOutput, BiasesMinimaAndPenaltiesCannotBreakTheForm) {
  TestApi server;
  for (const char* more :
       {R"("logit_bias":{"97":-100,"120":100})", R"("min_tokens":9,"max_tokens":20)",
        R"("ignore_eos":true)", R"("repetition_penalty":5,"frequency_penalty":2)",
        R"("top_k":1,"temperature":1)", R"("top_p":0.01,"temperature":2)"})
    EXPECT_EQ(text_of(server.chat(std::string(R"(,"guided_regex":"a{5}",)") + more)), "aaaaa")
        << more;
}

TEST(StructuredOutput, TheFirstSpaceThatTheTokenizerDropsDoesNotCount) {
  TestOptions options;
  options.strips_space = true;
  TestApi server(options);
  EXPECT_EQ(text_of(server.chat(R"(,"guided_choice":["ab"])")), "ab");
  EXPECT_EQ(text_of(server.chat(R"(,"guided_choice":["ab"],"logit_bias":{"32":100})")), "ab");
}

TEST(StructuredOutput, WhatCannotBeEnforcedIsRefusedByName) {
  TestApi server;
  struct Case {
    const char* more;
    std::vector<const char*> words;
  };
  for (const Case& c : {
           Case{R"(,"guided_json":{"properties":{"a":{"not":{"items":{}}}}})",
                {"'not'", "#/properties/a/not", R"("param":"guided_json")",
                 "unsupported_parameter"}},
           Case{R"(,"guided_regex":"(a")", {R"("param":"guided_regex")", "invalid_value"}},
           Case{R"(,"grammar":"root ::= x")", {R"("param":"grammar")", "'x'"}},
           Case{R"(,"response_format":{"type":"json_schema","json_schema":{"schema":false}})",
                {R"("param":"response_format.json_schema.schema")"}},
       }) {
    const auto answer = server.chat(c.more);
    EXPECT_EQ(answer.status, 400);
    for (const char* word : c.words)
      EXPECT_NE(answer.body.find(word), std::string::npos) << answer.body;
  }
}

// What a request says does not depend on who runs beside it.
TEST(StructuredOutput, ManyAtOnceSayWhatEachSaysAlone) {
  TestApi server;
  const auto ask = [&](int i) {
    return text_of(server.post(
        "/v1/completions",
        R"({"prompt":"A","temperature":1.2,"max_tokens":30,"seed":)" + std::to_string(i) +
            (i % 3 == 0   ? R"(,"guided_json":{"items":{"type":"integer"},"maxItems":6}})"
             : i % 3 == 1 ? R"(,"guided_regex":"([a-z]{1,6} ){2,5}"})"
                          : "}")));
  };
  std::vector<std::string> alone;
  for (int i = 0; i < 24; ++i) alone.push_back(ask(i));
  std::vector<std::string> together(alone.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < alone.size(); ++i)
    threads.emplace_back([&, i] { together[i] = ask(static_cast<int>(i)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT((std::set<std::string>(alone.begin(), alone.end()).size()), 12u);
  EXPECT_EQ(together, alone);
}

}  // namespace
}  // namespace weir::api
