// Answers of chat and text completions, over a socket and through the real engine.
#include <gtest/gtest.h>

#include "api/test_api.h"

namespace weir::api {
namespace {

// The prompt "[user]Hi[assistant]" has 19 tokens, the answer "hey \xc3\xa9!" has 7.
constexpr std::string_view kUsage =
    R"("usage":{"prompt_tokens":19,"completion_tokens":7,"total_tokens":26,)"
    R"("prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},)"
    R"("completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,)"
    R"("accepted_prediction_tokens":0,"rejected_prediction_tokens":0}})";

std::string chunk(const std::string& choice, const std::string& tail = {}) {
  return R"(data: {"id":"chatcmpl-ID","object":"chat.completion.chunk","created":TIME,"model":"m",)"
         R"("choices":[)" +
         choice + "]" + tail + "}\n\n";
}

std::string delta(const std::string& text) {
  return chunk(R"({"index":0,"delta":{"content":")" + text +
               R"("},"logprobs":null,"finish_reason":null})");
}

TEST(ChatCompletions, AnswersWhole) {
  TestApi server;
  const auto answer = server.chat();
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Content-Type"), "application/json");
  EXPECT_EQ(normalised(answer.body),
            R"({"id":"chatcmpl-ID","object":"chat.completion","created":TIME,"model":"m",)"
            R"("choices":[{"index":0,"message":{"role":"assistant","content":"hey )"
            "\xc3\xa9"
            R"(!","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],)" +
                std::string(kUsage) + "}");
}

TEST(ChatCompletions, StreamsEventsOfWholeCharacters) {
  TestApi server;
  const auto answer = server.chat(R"(,"stream":true)");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.header("Content-Type").starts_with("text/event-stream"));
  EXPECT_EQ(answer.header("Cache-Control"), "no-cache");
  EXPECT_EQ(answer.header("X-Accel-Buffering"), "no");
  const std::string role = chunk(
      R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})");
  EXPECT_EQ(normalised(answer.body),
            role + delta("h") + delta("e") + delta("y") + delta(" ") + delta("\xc3\xa9") +
                delta("!") +
                chunk(R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"})") +
                "data: [DONE]\n\n");
}

TEST(ChatCompletions, EndsAStreamWithUsageWhenAsked) {
  TestApi server;
  const std::string body =
      normalised(server.chat(R"(,"stream":true,"stream_options":{"include_usage":true})").body);
  const std::string end = chunk(R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"})",
                                R"(,"usage":null)") +
                          chunk("", "," + std::string(kUsage)) + "data: [DONE]\n\n";
  EXPECT_TRUE(body.ends_with(end)) << body;
  size_t nulls = 0;
  for (size_t at = 0; (at = body.find(R"("usage":null)", at)) != std::string::npos; ++at) ++nulls;
  EXPECT_EQ(nulls, 8u);  // Role, six texts, finish.
}

TEST(ChatCompletions, StopsAtALengthAndSaysSo) {
  TestApi server;
  const auto answer = server.chat(R"(,"max_tokens":3)");
  EXPECT_NE(answer.body.find(R"("content":"hey")"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find(R"("finish_reason":"length")"), std::string::npos);
  EXPECT_NE(answer.body.find(R"("completion_tokens":3,)"), std::string::npos);
  // A limit within a character: what has come of it is no text.
  EXPECT_NE(server.chat(R"(,"max_completion_tokens":5)").body.find("\"hey \xef\xbf\xbd\""),
            std::string::npos);
}

TEST(ChatCompletions, CutsBeforeAStopStringAndCountsToItsEnd) {
  TestApi server;
  for (const char* stream : {"false", "true"}) {
    const std::string more =
        std::string(R"(,"stop":["zz","y "],"stream":)") + stream +
        (stream[0] == 't' ? R"(,"stream_options":{"include_usage":true})" : "");
    const std::string body = server.chat(more).body;
    EXPECT_NE(body.find(R"("finish_reason":"stop")"), std::string::npos) << body;
    EXPECT_NE(body.find(R"("completion_tokens":4,)"), std::string::npos) << body;
    EXPECT_EQ(body.find("\"y"), std::string::npos) << body;
  }
  EXPECT_NE(server.chat(R"(,"stop":"y ")").body.find(R"("content":"he")"), std::string::npos);
  EXPECT_NE(server.chat(R"(,"stop":"y ","include_stop_str_in_output":true)")
                .body.find(R"("content":"hey ")"),
            std::string::npos);
}

TEST(ChatCompletions, CancelsWhatAStopStringHasEnded) {
  TestApi server({.step_us = 1000});
  const auto answer = server.complete(R"(,"max_tokens":4000,"stop":"GH")");
  EXPECT_NE(answer.body.find(R"("text":"BCDEF")"), std::string::npos) << answer.body;
  // Long before 4000 steps could have run.
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 0; }));
}

TEST(ChatCompletions, GivesEachChoiceAnEndOfItsOwn) {
  TestApi server;
  const auto whole = server.chat(R"(,"n":3)");
  for (const char* index :
       {R"("index":0,"message")", R"("index":1,"message")", R"("index":2,"message")",
        R"("prompt_tokens":19,)", R"("completion_tokens":21,)"})
    EXPECT_NE(whole.body.find(index), std::string::npos) << index << whole.body;
  const std::string body = server.chat(R"(,"n":2,"stream":true)").body;
  for (const char* index : {"0", "1"}) {
    const std::string choice = std::string(R"("index":)") + index;
    EXPECT_NE(body.find(choice + R"(,"delta":{"role")"), std::string::npos);
    EXPECT_NE(body.find(choice + R"(,"delta":{},"logprobs":null,"finish_reason":"stop")"),
              std::string::npos);
  }
}

TEST(ChatCompletions, ReportsLogProbabilitiesWithBytes) {
  TestApi server;
  const std::string body = server.chat(R"(,"logprobs":true,"top_logprobs":2,"max_tokens":1)").body;
  const size_t begin = body.find(R"("logprobs":{"content":[)");
  ASSERT_NE(begin, std::string::npos) << body;
  EXPECT_NE(body.find(R"("content":[{"token":"h","logprob":)", begin), std::string::npos);
  EXPECT_NE(body.find(R"("bytes":[104],"top_logprobs":[{"token":"h",)", begin), std::string::npos);
  EXPECT_NE(body.find(R"(}]}],"refusal":null},"finish_reason":"length")"), std::string::npos)
      << body;
  // A character over two tokens comes in one event with both entries.
  const std::string stream = server.chat(R"(,"logprobs":true,"stream":true)").body;
  EXPECT_NE(stream.find("{\"content\":\"\xc3\xa9\"},\"logprobs\":{\"content\":["
                        "{\"token\":\"\xef\xbf\xbd\",\"logprob\":"),
            std::string::npos)
      << stream;
  EXPECT_NE(stream.find(R"("bytes":[195],"top_logprobs":[]})"), std::string::npos);
  EXPECT_NE(stream.find(R"("bytes":[169],"top_logprobs":[]})"), std::string::npos);
}

TEST(ChatCompletions, LeavesTheTokensOfAStopStringOutOfLogprobs) {
  TestApi server;
  const std::string body = server.chat(R"(,"logprobs":true,"stop":"y ")").body;
  EXPECT_NE(body.find(R"("token":"e")"), std::string::npos);
  EXPECT_EQ(body.find(R"("token":"y")"), std::string::npos) << body;
  EXPECT_EQ(body.find(R"("token":" ")"), std::string::npos) << body;
}

TEST(ChatCompletions, CountTheTextOfLogprobsAsTheClientSeesIt) {
  TestApi server;
  // A byte that is no character is shown as one of three bytes, at once or when the next has come.
  for (const auto& [prompt, first, second, third] :
       {std::array{"0", "\\xff", "1", "2"}, std::array{"3", "\\xe2", "4", ""}}) {
    const auto complete = [&](const std::string& more) {
      return server
          .post("/v1/completions", R"({"prompt":")" + std::string(prompt) +
                                       R"(","temperature":0,"logprobs":1)" + more + "}")
          .body;
    };
    const std::string head = R"("logprobs":{"tokens":["bytes:\)" + std::string(first) + "\"";
    const std::string whole = complete("");
    EXPECT_NE(whole.find(head + ",\"" + second), std::string::npos) << whole;
    EXPECT_NE(whole.find(*third ? R"("text_offset":[0,1,2]})" : R"("text_offset":[0,1]})"),
              std::string::npos)
        << whole;
    const std::string stopped = complete(R"(,"stop":")" + std::string(second) + "\"");
    EXPECT_NE(stopped.find(head + "]"), std::string::npos) << stopped;
  }
}

TEST(ChatCompletions, SendLogprobsWithoutTextBeforeTheyAreTooMany) {
  TestApi server({.context = 8192});
  // Special tokens only, which are not shown: 6,000 of them with 20 alternatives have 6 MB of JSON.
  const auto answer =
      server.chat(R"(,"stream":true,"logprobs":true,"top_logprobs":20,"logit_bias":{"257":100},)"
                  R"("max_tokens":6000)");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body.ends_with("data: [DONE]\n\n"));
  EXPECT_GT(answer.body.size(), 4u << 20);
  size_t longest = 0;
  for (size_t at = 0, end; (end = answer.body.find("\n\n", at)) != std::string::npos; at = end + 2)
    longest = std::max(longest, end - at);
  EXPECT_LT(longest, 300u << 10);
}

TEST(Completions, KeepTheFirstSpaceThatAnAnswerOfItsOwnLoses) {
  TestApi server({.strips_space = true});
  const auto text = [&](const std::string& path, const std::string& body) {
    const std::string answer = server.post(path, body).body;
    const std::string key = path.ends_with("chat/completions") ? R"("content":")" : R"("text":")";
    const size_t begin = answer.find(key) + key.size();
    return answer.substr(begin, answer.find('"', begin) - begin);
  };
  EXPECT_EQ(text("/v1/completions", R"({"prompt":"5","temperature":0})"), " \xc3\xa9!");
  EXPECT_EQ(text("/v1/chat/completions",
                 TestApi::chat_body(R"(,"logit_bias":{"32":100},"max_tokens":3)")),
            "  ");
  EXPECT_EQ(text("/v1/chat/completions",
                 R"({"temperature":0,"continue_final_message":true,"add_generation_prompt":false,
                     "messages":[{"role":"user","content":"x"},{"role":"assistant","content":"5"}]})"),
            " \xc3\xa9!");
}

TEST(Completions, CountTokensThatCameWhileTheClientWasSlowAndPromptsWithoutAnAnswer) {
  TestOptions options;
  options.config.stream_pause_bytes = 1000;  // Three events.
  TestApi server(options);
  EXPECT_EQ(server.complete(R"(,"max_tokens":500,"stream":true)").status, 200);
  EXPECT_NE(
      server.get("/metrics").body.find("vllm:generation_tokens_total{model_name=\"m\"} 500\n"),
      std::string::npos);
  // '!' is followed by the end: nothing is generated, but the prompt was found.
  const std::string body = R"({"prompt":")" + std::string(200, '!') + R"(","temperature":0})";
  EXPECT_NE(server.post("/v1/completions", body).body.find(R"("completion_tokens":0)"),
            std::string::npos);
  const std::string again = server.post("/v1/completions", body).body;
  EXPECT_NE(again.find(R"("cached_tokens":192)"), std::string::npos) << again;
}

TEST(ChatCompletions, ContinuesTheLastMessage) {
  TestApi server;
  const auto answer = server.post(
      "/v1/chat/completions",
      R"({"model":"m","temperature":0,"continue_final_message":true,"add_generation_prompt":false,
          "max_tokens":3,"messages":[{"role":"user","content":"x"},
          {"role":"assistant","content":"LMN"}]})");
  EXPECT_NE(answer.body.find(R"("content":"OPQ")"), std::string::npos) << answer.body;
}

TEST(ChatCompletions, PassesToolsToTheTemplateAndAnswersText) {
  TestApi server;
  const auto answer =
      server.chat(R"(,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto")");
  EXPECT_NE(answer.body.find(R"("prompt_tokens":27,)"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find(R"("finish_reason":"stop")"), std::string::npos) << answer.body;
}

TEST(ChatCompletions, ReportsCachedTokens) {
  TestApi server;
  const std::string body =
      R"({"model":"m","temperature":0,"messages":[{"role":"user","content":")" +
      std::string(100, 'x') + R"("}]})";
  const auto cached = [&](const std::string& text) {
    return std::stoi(text.substr(text.find(R"("cached_tokens":)") + 16));
  };
  EXPECT_EQ(cached(server.post("/v1/chat/completions", body).body), 0);
  EXPECT_GE(cached(server.post("/v1/chat/completions", body).body), 64);
}

TEST(Completions, AnswersWithSixteenTokensUnlessTold) {
  TestApi server;
  const auto answer = server.complete();
  EXPECT_TRUE(normalised(answer.body)
                  .starts_with(R"({"id":"cmpl-ID","object":"text_completion","created":TIME,)"
                               R"("model":"m","choices":[{"index":0,"text":"BCDEFGHIJKLMNOPQ",)"
                               R"("logprobs":null,"finish_reason":"length"}],)"))
      << answer.body;
  EXPECT_NE(answer.body.find(R"("finish_reason":"length")"), std::string::npos);
}

TEST(Completions, AnswersSeveralPromptsInOrder) {
  TestApi server;
  const std::string body =
      server
          .post("/v1/completions",
                R"({"model":"m","prompt":["A","K"],"n":2,"max_tokens":2,"temperature":0})")
          .body;
  const std::string end = R"(","logprobs":null,"finish_reason":"length"})";
  EXPECT_NE(body.find(R"([{"index":0,"text":"BC)" + end + R"(,{"index":1,"text":"BC)" + end +
                      R"(,{"index":2,"text":"LM)" + end + R"(,{"index":3,"text":"LM)" + end),
            std::string::npos)
      << body;
  EXPECT_NE(body.find(R"("prompt_tokens":2,"completion_tokens":8,)"), std::string::npos) << body;
  EXPECT_NE(server.post("/v1/completions", R"({"prompt":[[65],[75]],"max_tokens":1})")
                .body.find(R"("text":"L")"),
            std::string::npos);
}

TEST(Completions, ReportsLogProbabilitiesInTheirOwnShape) {
  TestApi server;
  const std::string body = server.complete(R"(,"logprobs":1,"max_tokens":2)").body;
  EXPECT_NE(body.find(R"("logprobs":{"tokens":["B","C"],"token_logprobs":[)"), std::string::npos)
      << body;
  EXPECT_NE(body.find(R"("top_logprobs":[{"B":)"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("text_offset":[0,1]})"), std::string::npos) << body;
}

TEST(Completions, StreamsWithItsOwnObject) {
  TestApi server;
  const std::string event =
      R"(data: {"id":"cmpl-ID","object":"text_completion","created":TIME,"model":"m","choices":[)";
  EXPECT_EQ(normalised(server.complete(R"(,"max_tokens":1,"stream":true)").body),
            event +
                R"({"index":0,"text":"B","logprobs":null,"finish_reason":null}]})"
                "\n\n" +
                event +
                R"({"index":0,"text":"","logprobs":null,"finish_reason":"length"}]})"
                "\n\ndata: [DONE]\n\n");
}

TEST(Completions, GiveTheSameTextForTheSameSeed) {
  TestApi server;
  const auto text = [&](const std::string& seed) {
    const std::string body =
        server
            .post("/v1/completions", R"({"prompt":"A","temperature":2,"logit_bias":{"256":-100},)"
                                     R"("max_tokens":64,"seed":)" +
                                         seed + "}")
            .body;
    return body.substr(body.find("\"text\""), body.find("\"logprobs\"") - body.find("\"text\""));
  };
  EXPECT_EQ(text("5"), text("5"));
}

TEST(Completions, GoOnAfterTheEndWhenAskedAndKeepSpecialTokensWhenAsked) {
  TestApi server;
  const std::string rest = R"(,"prompt":"!","max_tokens":3,"temperature":0)";
  const auto run = [&](const std::string& more) {
    return server.post("/v1/completions", R"({"model":"m")" + rest + more + "}").body;
  };
  EXPECT_NE(run("").find(R"("completion_tokens":0,)"), std::string::npos) << run("");
  EXPECT_NE(run(R"(,"ignore_eos":true)").find(R"("completion_tokens":3,)"), std::string::npos);
  EXPECT_NE(run(R"(,"ignore_eos":true,"skip_special_tokens":false)").find("<end><end><end>"),
            std::string::npos);
  EXPECT_NE(run(R"(,"min_tokens":2)").find(R"("completion_tokens":2,)"), std::string::npos);
}

}  // namespace
}  // namespace weir::api
