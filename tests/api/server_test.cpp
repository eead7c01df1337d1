// Routes, errors, keys, CORS, ids, pages, and what happens when clients leave or do not read.
#include <gtest/gtest.h>

#include "api/test_api.h"
#include "text/regex.h"

namespace weir::api {
namespace {

constexpr const char* kJson = "Content-Type: application/json\r\n";

TEST(Errors, HaveOpenAisShapeWhateverGoesWrong) {
  TestApi server({.config = {.model_id = "org/m", .aliases = {"alias"}}});
  const auto check = [&](const net::RawClient::Response& answer, int status, const char* code) {
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_EQ(error_code(answer.body), code);
    EXPECT_EQ(answer.header("Content-Type"), "application/json");
    EXPECT_FALSE(answer.header("x-request-id").empty());
  };
  const std::string chat = "/v1/chat/completions";
  check(server.get("/v2/nothing"), 404, "unknown_url");
  check(server.get("/v1/models/other"), 404, "model_not_found");
  check(server.post(chat, R"({"model":"other","messages":[{"role":"user","content":"x"}]})"), 404,
        "model_not_found");
  check(server.post(chat, "{"), 400, "null");
  check(server.post(chat, ""), 400, "null");
  check(server.post(chat, "{\"model\":\"\xff\"}"), 400, "null");
  check(server.post(chat, R"({"model":"alias"})"), 400, "missing_required_parameter");
  check(server.post(chat, R"({"model":"alias","messages":5})"), 400, "invalid_type");
  check(server.post(chat, "{}", "Content-Type: text/plain\r\n"), 415, "null");
  check(server.post("/v1/completions", R"({"prompt":""})"), 400, "invalid_value");
  const auto wrong_method = server.get(chat);
  check(wrong_method, 405, "null");
  EXPECT_NE(wrong_method.header("Allow").find("POST"), std::string::npos);
}

TEST(Errors, OfAnUnknownModelNameTheOnesThatAreThere) {
  TestApi server(
      {.config = {.model_id = "m", .aliases = {"m", "two", "/path"}, .given_names = {"m", "two"}}});
  const auto ask = [&](const std::string& model) {
    return server.post("/v1/completions", R"({"prompt":"A","max_tokens":1,"model":)" + model + "}");
  };
  const auto answer = ask("\"gpt-4o\"");
  EXPECT_EQ(answer.status, 404);
  EXPECT_EQ(error_code(answer.body), "model_not_found");
  EXPECT_NE(answer.body.find("The model 'gpt-4o' does not exist; this server has 'm' (also called "
                             "'two'). Leave 'model' out, or start the server with --alias '*' to "
                             "have it answer to any name."),
            std::string::npos)
      << answer.body;
  for (const char* known : {"\"m\"", "\"two\"", "\"/path\"", "\"\"", "null"}) {
    const auto served = ask(known);
    EXPECT_EQ(served.status, 200) << known << served.body;
    EXPECT_NE(served.body.find(R"("model":"m")"), std::string::npos) << served.body;
  }
  EXPECT_NE(server.get("/v1/models").body.find(R"({"id":"m","aliases":["m","two"],"object":)"),
            std::string::npos);
}

TEST(Errors, OfAnUnknownModelAreNoneWhereAnyNameWillDo) {
  TestApi server({.config = {.model_id = "m", .any_name = true}});
  const auto answer =
      server.post("/v1/completions", R"({"prompt":"A","max_tokens":1,"model":"gpt-4o"})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_NE(answer.body.find(R"("model":"m")"), std::string::npos) << answer.body;
  EXPECT_NE(server.get("/v1/models/gpt-4o").body.find(R"({"id":"gpt-4o","object":"model",)"),
            std::string::npos);
}

TEST(Errors, NameTheContextInWordsThatClientsKnow) {
  TestApi server({.context = 64});
  const auto answer =
      server.post("/v1/chat/completions", R"({"model":"m","messages":[{"role":"user","content":")" +
                                              std::string(100, 'x') + R"("}]})");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.body,
            R"({"error":{"message":"This model's maximum context length is 64 tokens. However, )"
            R"(your messages resulted in 117 tokens, which exceeds the context window )"
            R"((context_length_exceeded). Please reduce the length of the messages. The )"
            R"(prompt is too long: 117 tokens > 64 maximum",)"
            R"("type":"invalid_request_error","param":"messages",)"
            R"("code":"context_length_exceeded"}})");
  // A text that is far too long is not counted to its end.
  const auto huge =
      server.post("/v1/completions", R"({"prompt":")" + std::string(100'000, 'x') + R"("})");
  EXPECT_EQ(error_code(huge.body), "context_length_exceeded");
  EXPECT_NE(huge.body.find("resulted in at least 1024 tokens"), std::string::npos) << huge.body;
  // The answer takes what the context leaves, whatever was asked for.
  const auto rest = server.complete(R"(,"max_tokens":100000)");
  EXPECT_NE(rest.body.find(R"("completion_tokens":63,)"), std::string::npos) << rest.body;
}

TEST(Errors, RepeatOnlyTheBeginningOfWhatTheClientSent) {
  TestApi server;
  const std::string text = "\"" + std::string(5000, 'r') + "\"";
  for (const std::string& body :
       {R"({"messages":[{"role":)" + text + "}]}",
        R"({"messages":[{"role":"user","content":[{"type":)" + text + "}]}]}",
        R"({"messages":[{"role":"user","content":"x"}],"model":)" + text + "}",
        R"({"messages":[{"role":"user","content":"x"}],"tool_choice":)" + text + "}",
        R"({"messages":[{"role":"user","content":"x"}],"response_format":{"type":)" + text + "}}",
        R"({"messages":[{"role":"user","content":"x"}],"logit_bias":{)" + text + ":1}}"}) {
    const auto answer = server.post("/v1/chat/completions", body);
    EXPECT_TRUE(answer.status == 400 || answer.status == 404);
    EXPECT_LT(answer.body.size(), 700u) << answer.body;
  }
}

TEST(Errors, NameTheLimitOfPrompts) {
  TestOptions options;
  options.config.prompt_max = 10;
  TestApi server(options);
  const auto answer = server.chat();
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(error_code(answer.body), "context_length_exceeded");
  EXPECT_NE(answer.body.find("Input tokens exceed the configured limit of 10"), std::string::npos);
}

TEST(Errors, ComeFromTheHttpServerInTheSameShape) {
  net::HttpLimits limits;
  limits.body_bytes_max = 100;
  TestApi server({.config = {.cors_origins = {"*"}}, .limits = limits});
  const auto answer =
      server.post("/v1/completions", std::string(101, ' '), "Origin: https://a.example\r\n");
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(error_code(answer.body), "null");
  EXPECT_EQ(answer.header("Access-Control-Allow-Origin"), "*");
}

TEST(Errors, ComeFromTheHttpServerInTheShapeOfTheirPath) {
  net::HttpLimits limits;
  limits.body_bytes_max = 100;
  limits.header_bytes_max = 1000;
  TestApi server({.limits = limits});
  const auto anthropic = [](const net::RawClient::Response& answer, const std::string& type) {
    EXPECT_TRUE(answer.body.starts_with(R"({"type":"error","error":{"type":")" + type + '"'))
        << answer.body;
    EXPECT_FALSE(answer.header("request-id").empty());
  };
  const auto large = server.post("/v1/messages", std::string(101, ' '));
  EXPECT_EQ(large.status, 413);
  anthropic(large, "request_too_large");
  const auto headers = server.get("/v1/messages/x", "X: " + std::string(1000, 'x') + "\r\n");
  EXPECT_EQ(headers.status, 431);
  anthropic(headers, "invalid_request_error");
  const auto framing = server.get("/v1/messages?beta=true", "Content-Length: 1x\r\n");
  EXPECT_EQ(framing.status, 400);
  anthropic(framing, "invalid_request_error");
  EXPECT_EQ(error_code(server.get("/v1/chat", "Content-Length: 1x\r\n").body), "null");
}

TEST(Errors, SayThatAModelHasNoChatTemplate) {
  TestApi server({.with_template = false});
  const auto answer = server.chat();
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(error_code(answer.body), "unsupported_endpoint");
  EXPECT_EQ(server.complete().status, 200);
}

TEST(Pages, DescribeTheModel) {
  TestApi server({.config = {.model_id = "org/m",
                             .aliases = {"alias"},
                             .facts = {.context_trained = 8192,
                                       .hidden_size = 64,
                                       .parameters = 1000000,
                                       .bytes = 500000,
                                       .formats = "4-bit g32"}}});
  const std::string one =
      R"({"id":"org/m","object":"model","created":1700000000,"owned_by":"weir","max_model_len":4096,)"
      R"("status":{"value":"loaded"},"architecture":{"input_modalities":["text"],)"
      R"("output_modalities":["text"]},"pinned":true,)"
      R"("meta":{"n_vocab":261,"n_ctx":4096,"n_ctx_train":8192,"n_embd":64,"n_params":1000000,)"
      R"("size":500000,"ftype":"4-bit g32"}})";
  EXPECT_EQ(server.get("/v1/models").body, R"({"object":"list","data":[)" + one + "]}");
  EXPECT_NE(server.get("/v1/models/alias").body.find(R"("root":"org/m")"), std::string::npos);
  EXPECT_EQ(server.get("/v1/models/org%2Fm").body, one);
  EXPECT_EQ(server.get("/v1/models/org/m").body, one);
  EXPECT_EQ(server.get("/health").body, R"({"status":"ok"})");
  EXPECT_EQ(server.get("/v1/health").status, 200);
  EXPECT_EQ(server.get("/version").body, R"({"version":"0.0.1","commit":"abc1234"})");
}

TEST(Pages, TurnTextIntoTokensAndBack) {
  TestApi server;
  EXPECT_EQ(server.post("/tokenize", R"({"content":"Aé"})").body,
            R"({"count":3,"max_model_len":4096,"tokens":[65,195,169]})");
  EXPECT_EQ(server.post("/tokenize", R"({"content":"é","with_pieces":true})").body,
            R"({"count":2,"max_model_len":4096,"tokens":[{"id":195,"piece":[195]},)"
            R"({"id":169,"piece":[169]}]})");
  EXPECT_EQ(server.post("/tokenize", R"({"model":"m","prompt":"A<end>"})").body,
            R"({"count":2,"max_model_len":4096,"tokens":[65,256]})");
  EXPECT_EQ(server.post("/tokenize", R"({"messages":[{"role":"user","content":""}]})").body,
            R"({"count":17,"max_model_len":4096,"tokens":[91,117,115,101,114,93,91,97,115,115,)"
            R"(105,115,116,97,110,116,93]})");
  EXPECT_EQ(server.post("/detokenize", R"({"tokens":[65,195,169]})").body,
            "{\"content\":\"A\xc3\xa9\",\"prompt\":\"A\xc3\xa9\"}");
  EXPECT_EQ(server.post("/detokenize", R"({"tokens":[261]})").status, 400);
  EXPECT_EQ(server.post("/detokenize", R"({"tokens":["a"]})").status, 400);
  EXPECT_EQ(server.post("/tokenize", R"({"content":5})").status, 400);
  EXPECT_EQ(server.post("/tokenize", "{}").status, 400);
}

TEST(Pages, TellHarnessesWhatPromptsAreMadeWith) {
  TestOptions options;
  options.config.special_tokens = {{"eos_token", "<end>"}, {"pad_token", "<mark>"}};
  options.config.chat_template_source = "{{ messages }}";
  EXPECT_EQ(TestApi(options).get("/tokenizer_info").body,
            R"({"bos_token":null,"eos_token":"<end>","pad_token":"<mark>",)"
            R"("chat_template":"{{ messages }}"})");
  EXPECT_NE(TestApi().get("/tokenizer_info").body.find(R"("chat_template":null)"),
            std::string::npos);
}

TEST(Pages, RenderMetricsInPrometheusFormat) {
  TestApi server({.config = {.model_id = "a\"b"}});
  EXPECT_EQ(server.complete().status, 404);  // The model is called otherwise.
  EXPECT_EQ(server.post("/v1/completions", R"({"prompt":"A"})").status, 200);
  const auto page = server.get("/metrics");
  EXPECT_TRUE(page.header("Content-Type").starts_with("text/plain; version=0.0.4"));
  EXPECT_NE(page.body.find("vllm:num_requests_running{model_name=\"a\\\"b\"} 0\n"),
            std::string::npos)
      << page.body;
  EXPECT_NE(page.body.find("vllm:generation_tokens_total{model_name=\"a\\\"b\"} 16\n"),
            std::string::npos);
  EXPECT_NE(page.body.find("vllm:prompt_tokens_total{model_name=\"a\\\"b\"} 1\n"),
            std::string::npos);
  EXPECT_NE(page.body.find("weir_http_answers_total{status=\"4xx\"} 1\n"), std::string::npos);
  EXPECT_NE(page.body.find("weir_time_to_first_token_seconds_count 1\n"), std::string::npos);
  const auto well_formed = text::Pattern::regex(
      R"(\A([a-zA-Z_:][a-zA-Z0-9_:]*(\{.*\})? [-+0-9.eE]+|# (HELP|TYPE) [a-zA-Z_:][a-zA-Z0-9_:]* .+)\z)");
  ASSERT_TRUE(well_formed);
  std::istringstream lines(page.body);
  std::set<std::string> typed;
  for (std::string line; std::getline(lines, line);) {
    std::vector<text::Match> matches;
    EXPECT_TRUE(well_formed->find_matches(line, matches) && matches.size() == 1) << line;
    if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(typed.insert(line).second) << "twice: " << line;
    }
  }
  EXPECT_GT(typed.size(), 30u);
}

TEST(Keys, ArePresentedInAnyOfThreeHeaders) {
  TestApi server({.config = {.api_keys = {{"secret", "a"}, {"other", "b"}}}});
  for (const char* header : {"Authorization: Bearer secret\r\n", "authorization: bearer  other\r\n",
                             "x-api-key: secret\r\n", "api-key: other\r\n"})
    EXPECT_EQ(server.get("/v1/models", header).status, 200) << header;
  for (const char* header : {"", "Authorization: secret\r\n", "Authorization: Bearer secre\r\n",
                             "Authorization: Bearer secrets\r\n", "Authorization: Bearer \r\n",
                             "x-api-key: Secret\r\n", "api-key:\r\n"}) {
    const auto answer = server.get("/v1/models", header);
    EXPECT_EQ(answer.status, 401) << header;
    EXPECT_EQ(error_code(answer.body), "invalid_api_key");
  }
  EXPECT_EQ(server.get("/health").status, 200);
  EXPECT_EQ(server.get("/metrics").status, 401);
  EXPECT_EQ(server.post("/v1/completions", "{}").status, 401);
  // A long body, or one of unknown length, is refused before it is read, in the same words.
  const auto late = server.post("/v1/completions", "{}");
  for (const char* length : {"Content-Length: 9000000", "Transfer-Encoding: chunked"}) {
    RawClient client(server.port());
    client.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\n" + std::string(length) + "\r\n\r\n");
    const auto early = client.read_response();
    EXPECT_EQ(early.status, 401);
    EXPECT_EQ(early.body, late.body);
    EXPECT_EQ(early.header("WWW-Authenticate"), "Bearer");
    EXPECT_EQ(late.header("WWW-Authenticate"), "Bearer");
  }
}

TEST(Cors, AnswersPreflightsWithoutAKeyAndMarksErrorsAndStreams) {
  TestApi server(
      {.config = {.api_keys = {{"secret", "a"}}, .cors_origins = {"https://a.example"}}});
  const std::string origin = "Origin: https://a.example\r\n";
  RawClient client(server.port());
  client.send("OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + origin +
              "Access-Control-Request-Method: POST\r\n"
              "Access-Control-Request-Headers: authorization,content-type\r\n\r\n");
  const auto preflight = client.read_response();
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.header("Access-Control-Allow-Headers"), "authorization,content-type");
  EXPECT_EQ(preflight.header("Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_EQ(server.get("/v1/models", origin).header("Access-Control-Allow-Origin"),
            "https://a.example");  // A 401.
  const auto stream = server.post("/v1/chat/completions", TestApi::chat_body(R"(,"stream":true)"),
                                  origin + kJson + "Authorization: Bearer secret\r\n");
  EXPECT_EQ(stream.status, 200);
  EXPECT_EQ(stream.header("Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_EQ(stream.header("Access-Control-Allow-Credentials"), "true");
}

// Browsers refuse an answer that names its origin twice.
TEST(Cors, NamesTheOriginOnceInEveryAnswer) {
  const auto count = [](const std::string& head, const std::string& name) {
    int found = 0;
    for (size_t at = 0; (at = head.find("\r\n" + name + ": ", at)) != std::string::npos; ++at)
      ++found;
    return found;
  };
  for (const char* allowed : {"*", "https://a.example"}) {
    TestApi server({.config = {.cors_origins = {allowed}}});
    for (const std::string request :
         {"OPTIONS /v1/chat/completions HTTP/1.1\r\nAccess-Control-Request-Method: POST\r\n",
          "GET /health HTTP/1.1\r\n", "GET /nowhere HTTP/1.1\r\n", "POST /health HTTP/1.1\r\n",
          "POST /v1/completions HTTP/1.1\r\nContent-Length: 9999999999999\r\n"}) {
      RawClient client(server.port());
      client.send(request + "Host: x\r\nOrigin: https://a.example\r\n\r\n");
      const auto answer = client.read_response();
      EXPECT_EQ(count(answer.head, "Access-Control-Allow-Origin"), 1) << request;
      EXPECT_EQ(count(answer.head, "Access-Control-Expose-Headers"), 1) << request;
      EXPECT_EQ(count(answer.head, "Vary"), 1) << request;
    }
  }
}

TEST(RequestIds, AreTheClientsOwnIfTheyAreSane) {
  TestApi server;
  EXPECT_EQ(server.get("/health", "X-Request-Id: abc-1.2:3\r\n").header("x-request-id"),
            "abc-1.2:3");
  const std::string own = server.get("/health").header("x-request-id");
  EXPECT_TRUE(own.starts_with("req_")) << own;
  EXPECT_EQ(own.size(), 36u);
  EXPECT_NE(own, server.get("/health").header("x-request-id"));
  EXPECT_TRUE(
      server.get("/health", "X-Request-Id: a b\r\n").header("x-request-id").starts_with("req_"));
  EXPECT_TRUE(server.get("/health", "X-Request-Id: " + std::string(200, 'a') + "\r\n")
                  .header("x-request-id")
                  .starts_with("req_"));
}

TEST(ContentTypes, MayBeAbsentOrAnyJson) {
  TestApi server;
  for (const char* type : {"", kJson, "Content-Type: Application/JSON; charset=utf-8\r\n",
                           "Content-Type: application/vnd.api+json\r\n"})
    EXPECT_EQ(server.post("/tokenize", R"({"content":"a"})", type).status, 200) << type;
  for (const char* type : {"Content-Type: text/plain\r\n", "Content-Type: application/jsonx\r\n",
                           "Content-Type: application/x-www-form-urlencoded\r\n"})
    EXPECT_EQ(server.post("/tokenize", R"({"content":"a"})", type).status, 415) << type;
}

// A page may send bytes to other sites without a type, and nobody is asked before.
TEST(ContentTypes, AreRequiredOfBrowsers) {
  TestApi server;
  for (const std::string from :
       {"Origin: http://localhost\r\n", "Sec-Fetch-Site: same-origin\r\n"}) {
    const auto untyped = server.post("/tokenize", R"({"content":"a"})", from);
    EXPECT_EQ(untyped.status, 415) << from;
    EXPECT_NE(untyped.body.find("expected application/json, found none"), std::string::npos);
    EXPECT_EQ(server.post("/tokenize", R"({"content":"a"})", from + kJson).status, 200) << from;
  }
}

// Reads a stream's bytes until `wanted` events have come.
void read_events(RawClient& client, size_t wanted) {
  size_t before = 0;
  while (client.buffered() < wanted * 100 && client.read_some()) {
    ASSERT_NE(client.buffered(), before);
    before = client.buffered();
  }
}

TEST(Clients, ThatLeaveCancelTheirAnswers) {
  TestApi server({.step_us = 500});
  for (const bool stream : {true, false}) {
    RawClient client(server.port());
    client.send(net::post("/v1/completions",
                          std::string(R"({"prompt":"A","max_tokens":4000,"n":3,"stream":)") +
                              (stream ? "true}" : "false}")));
    EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 3; }));
    if (stream) read_events(client, 5);
    client.close();
    EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 0; })) << stream;
  }
  EXPECT_TRUE(server.eventually([&] {
    return server.get("/metrics").body.find("weir_client_disconnects_total 2\n") !=
           std::string::npos;
  }));
  EXPECT_EQ(server.chat().status, 200);
}

TEST(Clients, ThatDoNotReadHoldNothingButTheirTokens) {
  TestOptions options;
  options.config.stream_pause_bytes = 4096;
  options.context = 32768;
  TestApi server(options);
  RawClient slow(server.port(), "127.0.0.1", /*receive_buffer=*/4096);
  slow.send(net::post("/v1/completions",
                      R"({"prompt":"A","max_tokens":30000,"temperature":0,"stream":true})"));
  // The engine does not wait for the client.
  EXPECT_TRUE(server.eventually([&] {
    return server.get("/metrics").body.find("weir_generated_tokens_total 30000\n") !=
           std::string::npos;
  }));
  std::string text;
  const std::string body = slow.read_response().body;
  for (size_t at = 0; (at = body.find(R"("text":")", at)) != std::string::npos; at += 8)
    if (body[at + 8] != '"') text += body[at + 8];
  EXPECT_EQ(text.size(), 30000u);
  for (size_t i = 0; i < text.size(); ++i)
    ASSERT_EQ(text[i], static_cast<char>('A' + (i + 1) % 26)) << i;
  EXPECT_TRUE(body.ends_with("data: [DONE]\n\n"));
}

TEST(Streams, SendCommentsThroughALongSilence) {
  TestOptions options;
  options.config.keep_alive_ms = 100;
  options.step_us = 2'500'000;
  TestApi server(options);
  const std::string body = server.chat(R"(,"stream":true,"max_tokens":1)").body;
  EXPECT_TRUE(body.starts_with(": keep-alive\n\n")) << body;
  EXPECT_TRUE(body.ends_with("data: [DONE]\n\n"));
}

TEST(Streams, EndWithAnErrorEventWhenTheServerStops) {
  TestApi server({.step_us = 500});
  RawClient streaming(server.port()), waiting(server.port());
  streaming.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":4000,"stream":true})"));
  waiting.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":4000})"));
  read_events(streaming, 3);
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 2; }));
  server.engine().drain();
  EXPECT_EQ(server.get("/health").status, 503);
  EXPECT_EQ(server.chat().status, 503);
  server.stop_engine();
  const std::string body = streaming.read_response().body;
  EXPECT_EQ(body.find("[DONE]"), std::string::npos);
  const std::string last = body.substr(body.rfind("data: "));
  EXPECT_TRUE(last.starts_with(R"(data: {"error":{"message":"The server is shutting down.")"))
      << last;
  const auto whole = waiting.read_response();
  EXPECT_EQ(whole.status, 503);
  EXPECT_EQ(whole.header("Retry-After"), "1");
}

TEST(Streams, AreServedWhenTheirRequestsWereArrivingAsADrainBegan) {
  TestApi server;
  const std::string request = net::post("/v1/completions", R"({"prompt":"A","max_tokens":2})");
  RawClient client(server.port());
  client.send(request.substr(0, request.size() - 5));
  server.on_loop([&] { server.api().begin_drain(); });
  EXPECT_EQ(server.get("/health").status, 503);
  EXPECT_EQ(server.get("/ready").status, 503);
  client.send(request.substr(request.size() - 5));
  EXPECT_EQ(client.read_response().status, 200);
}

// A form that asks for what no token can write is found out when the answer stands before it.
TEST(Streams, EndWithAnErrorEventWhenTheEngineCannotGoOn) {
  // Slow enough that the stream has begun by then.
  TestApi server({.step_us = 5'000, .doubles_mark = true});
  const std::string form = R"(,"max_tokens":100,"guided_regex":"[A-Z]{20}!")";
  RawClient client(server.port());
  client.send(net::post("/v1/completions", R"({"prompt":"Z","stream":true)" + form + "}"));
  const auto streamed = client.read_response();
  EXPECT_EQ(streamed.status, 200);
  const size_t last = streamed.body.rfind("data: ");
  EXPECT_NE(streamed.body.substr(0, last).find(R"("text":"A")"), std::string::npos)
      << streamed.body;
  EXPECT_TRUE(streamed.body.substr(last).starts_with(
      R"(data: {"error":{"message":"The engine could not go on with this answer.")"))
      << streamed.body;
  EXPECT_EQ(streamed.body.find("[DONE]"), std::string::npos);
  // The stream has ended, not its connection.
  client.send(net::post("/v1/completions", R"({"prompt":"Z")" + form + "}"));
  const auto whole = client.read_response();
  EXPECT_EQ(whole.status, 500);
  EXPECT_EQ(error_code(whole.body), "null") << whole.body;
  EXPECT_EQ(server.complete(R"(,"max_tokens":2)").status, 200);
}

TEST(Streams, EndWhenAllAreCancelled) {
  TestApi server({.step_us = 500});
  RawClient client(server.port());
  client.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":4000,"stream":true})"));
  read_events(client, 3);
  server.on_loop([&] { server.api().cancel_all(); });
  EXPECT_NE(client.read_response().body.find(R"(data: {"error")"), std::string::npos);
}

}  // namespace
}  // namespace weir::api
