// What Ollama's endpoints accept and refuse, and what templates are given of it.
#include "api/ollama/request.h"

#include <gtest/gtest.h>

#include "api/request/keep_alive.h"

namespace weir::api::ollama {
namespace {

constexpr RequestLimits kLimits{1000};

Result<Request> chat(const std::string& more,
                     const std::string& messages = R"([{"role":"user","content":"Hi"}])") {
  return parse_chat(
      R"({"model":"m:latest","messages":)" + messages + (more.empty() ? "" : "," + more) + "}",
      kLimits);
}

std::string turns(const std::string& messages) {
  const auto request = chat("", messages);
  return request ? request->messages : request.error().message;
}

void expect_refused(const Result<Request>& result, const std::string& param,
                    ErrorCode code = ErrorCode::kInvalid) {
  ASSERT_FALSE(result.has_value()) << param;
  EXPECT_EQ(result.error().param, param) << result.error().message;
  EXPECT_EQ(result.error().code, code) << result.error().message;
}

TEST(OllamaRequest, ReadsEveryField) {
  const auto request = chat(R"(
      "options":{"num_predict":7,"temperature":0.5,"top_k":3,"top_p":0.9,"min_p":0.1,
                 "typical_p":0.8,"seed":5,"stop":["a","b"],"repeat_penalty":1.2,
                 "presence_penalty":0.3,"frequency_penalty":0.4,"num_ctx":4096},
      "think":"max","stream":false,"keep_alive":"1h30m","logprobs":true,"top_logprobs":2,
      "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],
      "format":"json")");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->model, "m");
  EXPECT_EQ(request->shown_model, "m:latest");
  EXPECT_EQ(request->token_limit(), 7);
  EXPECT_EQ(request->temperature, 0.5);
  EXPECT_EQ(request->top_k, 3);
  EXPECT_EQ(request->top_p, 0.9);
  EXPECT_EQ(request->min_p, 0.1);
  EXPECT_EQ(request->typical_p, 0.8);
  EXPECT_EQ(request->seed, 5);
  EXPECT_EQ(request->stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(request->repetition_penalty, 1.2);
  EXPECT_EQ(request->presence_penalty, 0.3);
  EXPECT_EQ(request->frequency_penalty, 0.4);
  EXPECT_EQ(request->enable_thinking, true);
  EXPECT_EQ(request->reasoning_effort, "high");
  EXPECT_FALSE(request->stream);
  EXPECT_EQ(request->keep_alive_s, 5400.0);
  EXPECT_TRUE(request->logprobs);
  EXPECT_EQ(request->top_logprobs, 2);
  ASSERT_EQ(request->functions.size(), 1u);
  EXPECT_EQ(request->functions[0].name, "f");
  ASSERT_TRUE(request->grammar);
  EXPECT_EQ(request->grammar->kind, grammar::GrammarSource().kind);
  EXPECT_TRUE(request->ignored.empty()) << request->ignored.header();
}

TEST(OllamaRequest, StreamsUnlessItSaysNot) {
  const auto request = chat("");
  ASSERT_TRUE(request);
  EXPECT_TRUE(request->stream);
  EXPECT_FALSE(request->enable_thinking.has_value());
  EXPECT_TRUE(request->include_reasoning);
  EXPECT_FALSE(chat(R"("think":false)")->include_reasoning);
}

TEST(OllamaRequest, TakesNumbersBelowOneForNoLimitAndNoSeed) {
  for (const char* count : {"-2", "-1", "0"}) {
    const auto request = chat(R"("options":{"num_predict":)" + std::string(count) + "}");
    ASSERT_TRUE(request) << request.error().message;
    EXPECT_EQ(request->token_limit(), INT32_MAX) << count;
  }
  EXPECT_FALSE(chat(R"("options":{"seed":-1})")->seed.has_value());
  EXPECT_FALSE(chat("")->token_limit().has_value());
}

TEST(OllamaRequest, NamesOptionsThatItDoesNotKnow) {
  const auto request = chat(R"("options":{"temprature":1},"colour":"red")");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->ignored.header(), "options.temprature (temperature?), colour");
}

TEST(OllamaRequest, RefusesByTheNameOfTheField) {
  expect_refused(chat(R"("options":{"temperature":"hot"})"), "options.temperature");
  expect_refused(chat(R"("options":{"temperature":3})"), "options.temperature");
  expect_refused(chat(R"("options":{"stop":5})"), "options.stop");
  expect_refused(chat(R"("options":[])"), "options");
  expect_refused(chat(R"("think":"much")"), "think");
  expect_refused(chat(R"("format":"yaml")"), "format");
  expect_refused(chat(R"("format":5)"), "format");
  expect_refused(chat("", R"([{"role":"user","content":"x","images":"aGk="}])"),
                 "messages[0].images");
  expect_refused(chat("", R"([{"role":"user","content":"x","images":[5]}])"),
                 "messages[0].images[0]");
  expect_refused(chat("", R"([{"role":"assistant","content":"x","images":["aGk="]}])"),
                 "messages[0].images");
  expect_refused(chat("", R"([{"role":"robot","content":"x"}])"), "messages[0].role");
  expect_refused(chat("", R"([{"role":"user","content":["x"]}])"), "messages[0].content");
  expect_refused(
      chat("",
           R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}])"),
      "messages[0].tool_calls[0].function.arguments");
  expect_refused(
      chat("", R"([{"role":"user","tool_calls":[{"function":{"name":"f","arguments":{}}}]}])"),
      "messages[0].tool_calls");
  expect_refused(parse_generate(R"({"prompt":"x","template":"{{ .Prompt }}"})", kLimits),
                 "template", ErrorCode::kUnsupported);
  auto infill = parse_generate(R"({"prompt":"x","images":["aGk="],"suffix":"y"})", kLimits);
  ASSERT_TRUE(infill);
  EXPECT_FALSE(complete(*infill, /*has_template=*/true));
}

// Where the prompt names them, and else before it.
TEST(OllamaRequest, ImagesOfARawPromptStandWhereItSays) {
  const auto shown = [](const std::string& prompt) {
    auto raw = parse_generate(
        R"({"images":["aGk=","aGo="],"raw":true,"prompt":")" + prompt + R"("})", kLimits);
    EXPECT_TRUE(raw && complete(*raw, /*has_template=*/true)) << prompt;
    const auto& made = std::get<ShownPrompt>(raw->prompts.at(0));
    EXPECT_EQ(made.pictures, 2u);
    return made.text + " " + raw->media.at(0).text + raw->media.at(1).text;
  };
  EXPECT_EQ(shown("x"), "<__media__><__media__>x aGk=aGo=");
  EXPECT_EQ(shown("x[img-1]y"), "<__media__>x<__media__>y aGk=aGo=");
  EXPECT_EQ(shown("x[img-1]y[img-0]"), "x<__media__>y<__media__> aGo=aGk=");
  EXPECT_EQ(shown("[img-7][img-0][img-0][img-"), "<__media__>[img-7]<__media__>[img-0][img- aGo=aGk=");
}

TEST(OllamaRequest, ImagesStandBeforeTheText) {
  const auto request =
      parse_chat(R"({"messages":[{"role":"user","content":"x","images":["aGk=","aGo="]}]})", kLimits);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->messages, R"([{"role":"user","content":[{"type":"image"},{"type":"image"},)"
                               R"({"type":"text","text":"x"}]}])");
  ASSERT_EQ(request->media.size(), 2u);
  EXPECT_EQ(request->media[1].text, "aGo=");
  EXPECT_EQ(request->media[1].field, "messages[0].images[1]");
  auto prompt = parse_generate(R"({"prompt":"x","images":["aGk="]})", kLimits);
  ASSERT_TRUE(prompt);
  EXPECT_FALSE(prompt->is_empty());
  ASSERT_TRUE(complete(*prompt, /*has_template=*/true));
  EXPECT_EQ(prompt->messages,
            R"([{"role":"user","content":[{"type":"image"},{"type":"text","text":"x"}]}])");
}

TEST(OllamaRequest, GivesCallsAndTheirResultsIds) {
  EXPECT_EQ(
      turns(R"([
        {"role":"user","content":"Two cities."},
        {"role":"assistant","content":"","thinking":"Hm.","tool_calls":[
          {"function":{"index":0,"name":"weather","arguments":{"city":"Oslo"}}},
          {"function":{"name":"time","arguments":{}}},
          {"id":"own","function":{"name":"weather","arguments":{}}}]},
        {"role":"tool","content":"9","tool_name":"time"},
        {"role":"tool","content":"7 C","tool_name":"weather"},
        {"role":"tool","content":"8 C","tool_call_id":"own"}])"),
      R"([{"role":"user","content":"Two cities."},)"
      R"({"role":"assistant","content":"","reasoning_content":"Hm.","thinking":"Hm.","tool_calls":[)"
      R"({"id":"call00000","type":"function","function":{"name":"weather","arguments":{"city":"Oslo"}}},)"
      R"({"id":"call00001","type":"function","function":{"name":"time","arguments":{}}},)"
      R"({"id":"own","type":"function","function":{"name":"weather","arguments":{}}}]},)"
      R"({"role":"tool","content":"9","name":"time","tool_call_id":"call00001"},)"
      R"({"role":"tool","content":"7 C","name":"weather","tool_call_id":"call00000"},)"
      R"({"role":"tool","content":"8 C","name":"weather","tool_call_id":"own"}])");
}

TEST(OllamaRequest, ResultsWithoutANameAreThoseOfTheFirstCalls) {
  EXPECT_EQ(
      turns(R"([{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]},
                {"role":"tool","content":"1"},{"role":"tool","content":"2"}])"),
      R"([{"role":"assistant","content":"","tool_calls":[{"id":"call00000","type":"function",)"
      R"("function":{"name":"f","arguments":{}}}]},)"
      R"({"role":"tool","content":"1","name":"f","tool_call_id":"call00000"},)"
      R"({"role":"tool","content":"2"}])");
}

TEST(OllamaRequest, ContinuesTheAssistantsLastWords) {
  const auto continues = [](const std::string& last) {
    return chat("", R"([{"role":"user","content":"x"},)" + last + "]")->continue_final_message;
  };
  EXPECT_TRUE(continues(R"({"role":"assistant","content":"On"})"));
  EXPECT_FALSE(continues(R"({"role":"assistant","content":" \n"})"));
  EXPECT_FALSE(continues(R"({"role":"user","content":"On"})"));
  EXPECT_FALSE(continues(R"({"role":"assistant","content":"On","tool_calls":[)"
                         R"({"function":{"name":"f","arguments":{}}}]})"));
}

TEST(OllamaRequest, IsEmptyWhereNothingIsAsked) {
  EXPECT_TRUE(chat("", "[]")->is_empty());
  EXPECT_TRUE(chat("", "null")->is_empty());
  EXPECT_FALSE(chat("")->is_empty());
  EXPECT_TRUE(parse_generate(R"({"model":"m","prompt":""})", kLimits)->is_empty());
  EXPECT_FALSE(parse_generate(R"({"model":"m","suffix":"x"})", kLimits)->is_empty());
}

TEST(OllamaRequest, MakesAConversationOfAPromptWhereThereIsATemplate) {
  const std::string body = R"({"prompt":"Hi","system":"Be brief.")";
  auto request = parse_generate(body + "}", kLimits);
  ASSERT_TRUE(complete(*request, /*has_template=*/true));
  EXPECT_TRUE(is_conversation(*request));
  EXPECT_EQ(request->messages,
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}])");

  auto plain = parse_generate(body + "}", kLimits);
  ASSERT_TRUE(complete(*plain, /*has_template=*/false));
  EXPECT_FALSE(is_conversation(*plain));
  EXPECT_EQ(std::get<std::string>(plain->prompts.at(0)), "Hi");
  EXPECT_EQ(plain->ignored.header(), "system");

  auto raw = parse_generate(R"({"prompt":"Hi","raw":true})", kLimits);
  ASSERT_TRUE(complete(*raw, /*has_template=*/true));
  EXPECT_FALSE(is_conversation(*raw));
  auto both = parse_generate(body + R"(,"raw":true})", kLimits);
  EXPECT_EQ(complete(*both, /*has_template=*/true).error().param, "system");

  auto hole = parse_generate(R"({"prompt":"a","suffix":"b"})", kLimits);
  ASSERT_TRUE(complete(*hole, /*has_template=*/true));
  EXPECT_TRUE(hole->infill);
  EXPECT_FALSE(is_conversation(*hole));
}

double seconds_of(const std::string& json) {
  const auto doc = JsonDoc::parse(json);
  const Result<double> seconds = keep_alive_of("keep_alive", doc->root());
  return seconds ? *seconds : -99;
}

TEST(KeepAlive, IsSecondsOrAsGoWritesDurations) {
  for (const auto& [json, seconds] :
       std::initializer_list<std::pair<const char*, double>>{{"0", 0},
                                                             {"300", 300},
                                                             {"2.5", 2.5},
                                                             {"-1", -1},
                                                             {"-5", -1},
                                                             {R"("5m")", 300},
                                                             {R"("1h30m")", 5400},
                                                             {R"("1.5h")", 5400},
                                                             {R"("300ms")", 0.3},
                                                             {R"("0")", 0},
                                                             {R"("0s")", 0},
                                                             {R"("-0")", 0},
                                                             {R"("-1")", -1},
                                                             {R"("-1m")", -1},
                                                             {R"("24h0m0s")", 86400}})
    EXPECT_DOUBLE_EQ(seconds_of(json), seconds) << json;
}

TEST(KeepAlive, RefusesWhatIsNoDuration) {
  for (const char* json : {R"("")", R"("soon")", R"("5x")", R"("5m3")", R"("m")", R"("--1")",
                           R"("1e3s")", R"("inf")", "true", "[]"})
    EXPECT_EQ(seconds_of(json), -99) << json;
}

}  // namespace
}  // namespace weir::api::ollama
