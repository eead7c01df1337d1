// /api of a whole server: answers to the byte, lines, models, pulls, errors in Ollama's form.
#include "api/fake_desk.h"
#include "api/test_api.h"

namespace weir::api::ollama {
namespace {

std::string chat(const std::string& more = {}, const std::string& last = "Hi") {
  return R"({"model":"m","messages":[{"role":"user","content":")" + last +
         R"("}],"options":{"temperature":0,"num_predict":20})" + more + "}";
}

std::string without_times(std::string text) {
  replace_runs(text, R"("created_at":")", "0123456789-:.TZ", 27, "TIME");
  for (const char* name : {"total_duration", "prompt_eval_duration", "eval_duration"})
    replace_runs(text, "\"" + std::string(name) + "\":", "0123456789", 1, "N");
  return text;
}

// Management wants it said.
constexpr const char* kJson = "Content-Type: application/json\r\n";

std::vector<std::string> lines_of(const std::string& body) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t end; (end = body.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(body.substr(begin, end - begin));
  EXPECT_EQ(begin, body.size()) << "every line has an end";
  return lines;
}

std::string error_of(const net::RawClient::Response& response) {
  const auto doc = JsonDoc::parse(response.body);
  std::string_view text;
  if (!doc || doc->root()["error"].get(text)) return "another shape: " + response.body;
  return std::to_string(response.status) + " " + std::string(text);
}

TEST(OllamaChat, AWholeAnswer) {
  TestApi server;
  const auto response = server.post("/api/chat", chat(R"(,"stream":false)"));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("Content-Type"), "application/json");
  EXPECT_EQ(without_times(response.body),
            R"({"model":"m","created_at":"TIME","message":{"role":"assistant","content":)"
            "\"hey \xc3\xa9!\"},"
            R"("done":true,"done_reason":"stop","total_duration":N,"load_duration":0,)"
            R"("prompt_eval_count":19,"prompt_eval_duration":N,"eval_count":7,"eval_duration":N})");
}

TEST(OllamaChat, LinesUnlessItSaysNot) {
  TestApi server;
  const auto response = server.post("/api/chat", chat());
  EXPECT_EQ(response.header("Content-Type"), "application/x-ndjson");
  const std::vector<std::string> lines = lines_of(without_times(response.body));
  ASSERT_GE(lines.size(), 3u) << response.body;
  std::string text;
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    const auto doc = JsonDoc::parse(lines[i]);
    ASSERT_TRUE(doc) << lines[i];
    text += doc->root()["message"]["content"].get_string().value();
    EXPECT_FALSE(doc->root()["done"].get_bool().value());
  }
  EXPECT_EQ(text, "hey \xc3\xa9!");
  EXPECT_EQ(lines.back(),
            R"({"model":"m","created_at":"TIME","message":{"role":"assistant","content":""},)"
            R"("done":true,"done_reason":"stop","total_duration":N,"load_duration":0,)"
            R"("prompt_eval_count":19,"prompt_eval_duration":N,"eval_count":7,"eval_duration":N})");
}

TEST(OllamaChat, TimesHaveSixDecimals) {
  const std::string body = TestApi().post("/api/chat", chat(R"(,"stream":false)")).body;
  const size_t begin = body.find(R"("created_at":")") + 14;
  EXPECT_EQ(body.find('"', begin) - begin, std::string("2026-01-31T12:00:00.000000Z").size());
}

TEST(OllamaChat, SaysWhyItEnded) {
  TestApi server;
  const std::string continued =
      R"({"model":"m:latest","stream":false,"messages":[{"role":"user","content":"x"},)"
      R"({"role":"assistant","content":"A"}],"options":{"temperature":0,)";
  const auto length = server.post("/api/chat", continued + R"("num_predict":3}})");
  EXPECT_NE(length.body.find(R"("content":"BCD"},"done":true,"done_reason":"length")"),
            std::string::npos)
      << length.body;
  EXPECT_TRUE(length.body.starts_with(R"({"model":"m:latest",)")) << length.body;
  const auto stop = server.post("/api/chat", continued + R"("stop":["DE"]}})");
  EXPECT_NE(stop.body.find(R"("content":"BC"},"done":true,"done_reason":"stop")"),
            std::string::npos)
      << stop.body;
}

TEST(OllamaChat, BindsTheAnswerToAForm) {
  TestApi server;
  const auto answer =
      server.post("/api/chat", chat(R"(,"stream":false,"format":{"type":"object","properties":{},)"
                                    R"("additionalProperties":false})"));
  const auto doc = JsonDoc::parse(answer.body);
  ASSERT_TRUE(doc) << answer.body;
  const std::string_view content = doc->root()["message"]["content"].get_string().value();
  EXPECT_TRUE(content.starts_with('{') && content.ends_with('}')) << content;
}

TEST(OllamaChat, ShowsLogProbabilities) {
  TestApi server;
  const std::string asked = R"({"model":"m","prompt":"A","raw":true,"logprobs":true,)"
                            R"("top_logprobs":1,"options":{"temperature":0,"num_predict":2})";
  const auto whole = server.post("/api/generate", asked + R"(,"stream":false})");
  const auto doc = JsonDoc::parse(whole.body);
  ASSERT_TRUE(doc) << whole.body;
  const JsonArray list = doc->root()["logprobs"].get_array().value();
  ASSERT_EQ(list.size(), 2u) << whole.body;
  EXPECT_EQ(list.at(0)["token"].get_string().value(), "B");
  EXPECT_EQ(list.at(0)["top_logprobs"].get_array().value().size(), 1u);
  size_t entries = 0;
  for (const std::string& line : lines_of(server.post("/api/generate", asked + "}").body))
    if (const auto each = JsonDoc::parse(line); each && !each->root()["logprobs"].error())
      entries += each->root()["logprobs"].get_array().value().size();
  EXPECT_EQ(entries, 2u);
}

TEST(OllamaChat, EndsWithALineThatSaysTheError) {
  TestOptions options;
  options.config.request_timeout_s = 0.2;
  options.step_us = 1000;
  TestApi server(options);
  const auto answer = server.post(
      "/api/generate", R"({"model":"m","prompt":"A","raw":true,"options":{"num_predict":4000}})");
  EXPECT_EQ(answer.status, 200);
  const std::vector<std::string> lines = lines_of(answer.body);
  ASSERT_GT(lines.size(), 1u);
  EXPECT_TRUE(lines.back().starts_with(R"({"error":"The answer took longer)")) << lines.back();
}

TEST(OllamaChat, SaysNothingThroughALongSilence) {
  TestOptions options;
  options.config.keep_alive_ms = 100;
  options.running_max = 1;
  options.step_us = 2000;
  TestApi server(options);
  RawClient first(server.port());
  first.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":1500})"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().stats().running.value() == 1; }));
  const auto waited = server.post("/api/chat", chat());
  const std::string& body = waited.body;
  const std::vector<std::string> lines = lines_of(body);
  ASSERT_GT(lines.size(), 1u);
  for (const std::string& line : lines) EXPECT_TRUE(JsonDoc::parse(line)) << line;
  EXPECT_NE(lines.front().find(R"("content":"")"), std::string::npos) << lines.front();
  first.close();
}

TEST(OllamaGenerate, PutsThePromptIntoTheTemplate) {
  TestApi server;
  const auto answer = server.post(
      "/api/generate",
      R"({"model":"m","prompt":"Hi","stream":false,"options":{"temperature":0,"num_predict":20}})");
  EXPECT_EQ(without_times(answer.body),
            R"({"model":"m","created_at":"TIME","response":)"
            "\"hey \xc3\xa9!\","
            R"("done":true,"done_reason":"stop","total_duration":N,"load_duration":0,)"
            R"("prompt_eval_count":19,"prompt_eval_duration":N,"eval_count":7,"eval_duration":N})");
}

TEST(OllamaGenerate, FillsInTheMiddle) {
  TestApi server({.infills = true});
  const auto answer =
      server.post("/api/generate", R"({"model":"m","prompt":"A","suffix":"B","stream":false,)"
                                   R"("options":{"temperature":0,"num_predict":3}})");
  EXPECT_NE(answer.body.find(R"("response":"KLM")"), std::string::npos) << answer.body;
}

TEST(OllamaGenerate, LoadsTheModelWhereNothingIsAsked) {
  TestApi server;
  const auto loaded = server.post("/api/generate", R"({"model":"m","stream":false})");
  EXPECT_EQ(without_times(loaded.body),
            R"({"model":"m","created_at":"TIME","response":"","done":true,"done_reason":"load"})");
  const auto lines = server.post("/api/chat", R"({"model":"m","messages":[],"keep_alive":"5m"})");
  EXPECT_EQ(lines.header("Content-Type"), "application/x-ndjson");
  EXPECT_EQ(without_times(lines.body),
            R"({"model":"m","created_at":"TIME","message":{"role":"assistant","content":""},)"
            "\"done\":true,\"done_reason\":\"load\"}\n");
}

TEST(OllamaGenerate, DoesNotUnloadTheOnlyModel) {
  TestApi server;
  const std::string unload = R"({"model":"m","keep_alive":0})";
  EXPECT_TRUE(
      error_of(server.post("/api/generate", unload, kJson)).starts_with("400 The model 'm' stays"));
  TestOptions options;
  options.config.api_keys = {{.secret = "k", .name = "k"}};
  TestApi keyed(options);
  const auto refused = keyed.post("/api/generate", unload, "Authorization: Bearer k\r\n");
  EXPECT_TRUE(error_of(refused).starts_with("403 This key may not use")) << refused.body;
}

TEST(OllamaErrors, AreInItsForm) {
  TestApi server;
  EXPECT_EQ(error_of(server.post("/api/chat", R"({"model":"x","messages":[{"role":"user"}]})")),
            "404 model 'x' not found");
  EXPECT_EQ(error_of(server.post("/api/show", R"({"name":"x:7b"})")), "404 model 'x:7b' not found");
  EXPECT_EQ(error_of(server.post("/api/chat", chat(R"(,"think":true)"))),
            "400 \"m\" does not support thinking");
  EXPECT_TRUE(error_of(server.post("/api/chat", "{")).starts_with("400 "));
  EXPECT_TRUE(error_of(server.post("/api/show", "{}")).starts_with("400 "));
  EXPECT_TRUE(error_of(server.get("/api/nothing")).starts_with("404 "));
  EXPECT_TRUE(error_of(server.get("/api/chat")).starts_with("405 "));
  for (const char* path : {"create", "copy", "push", "me", "blobs/sha256:0123"})
    EXPECT_TRUE(error_of(server.post("/api/" + std::string(path), "{}", kJson))
                    .starts_with("501 this server"))
        << path;
}

TEST(OllamaErrors, OfAFullServerAreThoseThatClientsWaitFor) {
  TestApi server({.queue_max = 1, .running_max = 1, .step_us = 1000});
  RawClient running(server.port());
  running.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":3000})"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().stats().running.value() == 1; }));
  const auto refused = server.post("/api/chat", chat());
  EXPECT_EQ(error_of(refused),
            "503 server busy, please try again.  maximum pending requests exceeded");
  EXPECT_FALSE(refused.header("Retry-After").empty());
  running.close();
}

TEST(OllamaErrors, OfAKeysLimitAreTheKeys) {
  TestOptions options;
  options.config.api_keys = {{.secret = "k", .name = "k", .requests_per_minute = 1}};
  TestApi server(options);
  const auto ask = [&] { return server.post("/api/chat", chat(), "Authorization: Bearer k\r\n"); };
  EXPECT_EQ(ask().status, 200);
  EXPECT_EQ(ask().status, 429);
}

TEST(OllamaModels, AreListedAndShown) {
  TestOptions options{.infills = true};
  options.config.model_id = "org/tiny";
  options.config.aliases = {"tiny"};
  options.config.facts = {.context_trained = 9000,
                          .hidden_size = 64,
                          .parameters = 135'000'000,
                          .bytes = 77,
                          .formats = "4-bit g32 79 %, bf16 21 %",
                          .family = "qwen3",
                          .files = "safetensors",
                          .digest = std::string(64, 'd'),
                          .modified = 1700000000,
                          .layers = 12,
                          .heads = 8,
                          .kv_heads = 2};
  TestApi server(options);
  const std::string details =
      R"("details":{"parent_model":"","format":"safetensors","family":"qwen3",)"
      R"("families":["qwen3"],"parameter_size":"135.0M","quantization_level":"4bit",)"
      R"("context_length":4096,"embedding_length":64})";
  const std::string head = R"({"models":[{"name":"org/tiny:latest","model":"org/tiny:latest",)"
                           R"("size":77,"digest":")" +
                           std::string(64, 'd') + "\"," + details;
  EXPECT_EQ(server.get("/api/tags").body, head +
                                              R"(,"capabilities":["completion","tools","insert"],)"
                                              R"("modified_at":"2023-11-14T22:13:20Z"}]})");
  const std::string loaded = server.get("/api/ps").body;
  EXPECT_TRUE(loaded.starts_with(head + R"(,"expires_at":")")) << loaded;
  EXPECT_TRUE(loaded.ends_with(R"(Z","size_vram":0,"context_length":4096}]})")) << loaded;
  const std::string shown = server.post("/api/show", R"({"model":"tiny:latest"})").body;
  for (const std::string& part :
       {details,
        std::string(R"("model_info":{"general.architecture":"qwen3",)"
                    R"("general.parameter_count":135000000,"qwen3.context_length":9000,)"
                    R"("qwen3.embedding_length":64,"qwen3.block_count":12,)"
                    R"("qwen3.attention.head_count":8,"qwen3.attention.head_count_kv":2})"),
        std::string(R"("capabilities":["completion","tools","insert"])"),
        std::string(R"("parameters":"temperature 0.8\ntop_k 40\n)")})
    EXPECT_NE(shown.find(part), std::string::npos) << part << "\n" << shown;
}

TEST(OllamaModels, MadeForEmbeddingsAreThatAlone) {
  TestOptions options;
  options.config.facts.embeds = true;
  EXPECT_NE(TestApi(options).get("/api/tags").body.find(R"("capabilities":["embedding"])"),
            std::string::npos);
}

TEST(OllamaEmbeddings, AreOfLengthOneOrAsTheModelHasThem) {
  TestOptions options;
  options.config.embedding.normalise = false;
  TestApi server(options);
  const std::string both = server.post("/api/embed", R"({"model":"m","input":["A","B"]})").body;
  EXPECT_TRUE(both.starts_with(R"({"model":"m","embeddings":[[0.)")) << both;
  EXPECT_NE(both.find(R"("load_duration":0,"prompt_eval_count":2})"), std::string::npos) << both;
  EXPECT_EQ(server.post("/api/embeddings", R"({"model":"m","prompt":"A"})").body,
            R"({"embedding":[65,1,-2,8.062258]})");
  EXPECT_EQ(error_of(server.post("/api/embed", R"({"model":"x","input":"A"})")),
            "404 model 'x' not found");
}

TEST(OllamaEmbeddings, CutTextsThatAreTooLongUnlessTheyMayNot) {
  TestApi server({.context = 64});
  const std::string text(100, 'A');
  const std::string asked = R"({"model":"m","input":")" + text + "\"";
  const auto cut = server.post("/api/embed", asked + "}");
  EXPECT_NE(cut.body.find(R"("prompt_eval_count":64})"), std::string::npos) << cut.body;
  EXPECT_TRUE(
      error_of(server.post("/api/embed", asked + R"(,"truncate":false})")).starts_with("400 "));
}

class OllamaPulls : public testing::Test {
 protected:
  TestOptions options() {
    TestOptions options;
    options.config.hub = &desk;
    return options;
  }
  FakeDesk desk;
};

TEST_F(OllamaPulls, SayHowFarTheyAre) {
  TestApi server(options());
  const auto answer = server.post("/api/pull", R"({"model":"hf.co/org/name:latest"})", kJson);
  EXPECT_EQ(answer.header("Content-Type"), "application/x-ndjson");
  EXPECT_EQ(answer.body,
            "{\"status\":\"pulling manifest\"}\n"
            R"({"status":"pulling aaaaaaaaaaaa","digest":"sha256:)" +
                std::string(64, 'a') +
                "\",\"total\":10,\"completed\":4}\n"
                "{\"status\":\"verifying sha256 digest\"}\n"
                "{\"status\":\"writing manifest\"}\n"
                "{\"status\":\"success\"}\n");
  EXPECT_EQ(desk.asked(), std::vector<std::string>{"pull org/name"});
  EXPECT_EQ(server.post("/api/pull", R"({"name":"org/name","stream":false})", kJson).body,
            R"({"status":"success"})");
  EXPECT_EQ(desk.stopped, 0);
}

TEST_F(OllamaPulls, ThatAreRefusedAreErrors) {
  desk.result = fail(ErrorCode::kNotFound, "no such repository");
  TestApi server(options());
  EXPECT_EQ(error_of(server.post("/api/pull", R"({"model":"org/name"})", kJson)),
            "404 no such repository");
}

TEST_F(OllamaPulls, EndWhenTheClientLeaves) {
  desk.ends_pulls = false;
  TestApi server(options());
  RawClient client(server.port());
  client.send(net::post("/api/pull", R"({"model":"org/name"})", kJson));
  EXPECT_TRUE(server.eventually([&] { return desk.asked().size() == 1; }));
  EXPECT_EQ(desk.stopped, 0);
  client.close();
  EXPECT_TRUE(server.eventually([&] { return desk.stopped == 1; }));
}

TEST_F(OllamaPulls, EndWithAnErrorWhenTheServerDoes) {
  desk.ends_pulls = false;
  TestApi server(options());
  RawClient client(server.port());
  client.send(net::post("/api/pull", R"({"model":"org/name"})", kJson));
  EXPECT_TRUE(server.eventually([&] { return desk.asked().size() == 1; }));
  server.on_loop([&] { server.api().cancel_all(); });
  const std::string body = client.read_response().body;
  EXPECT_TRUE(body.ends_with("{\"error\":\"The server is shutting down.\"}\n")) << body;
  EXPECT_EQ(desk.stopped, 1);
}

net::RawClient::Response remove(const TestApi& server, const std::string& body,
                                const std::string& type = "application/json") {
  RawClient client(server.port());
  client.send("DELETE /api/delete HTTP/1.1\r\nHost: x\r\nContent-Type: " + type +
              "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  return client.read_response();
}

TEST_F(OllamaPulls, AreTakenBackByDeleting) {
  TestApi server(options());
  EXPECT_EQ(remove(server, R"({"model":"org/name"})").status, 200);
  EXPECT_EQ(desk.asked(), std::vector<std::string>{"remove org/name"});
  EXPECT_TRUE(error_of(remove(server, R"({"model":"m"})")).starts_with("400 The model 'm' is"));
  EXPECT_EQ(remove(server, R"({"model":"org/name"})", "text/plain").status, 415);
  EXPECT_EQ(desk.asked().size(), 1u);
  desk.result = fail(ErrorCode::kNotFound, "not in the cache");
  EXPECT_EQ(error_of(remove(server, R"({"name":"org/other"})")), "404 model 'org/other' not found");
}

// A server that answers to any name still knows its own.
TEST_F(OllamaPulls, AreTakenBackAlsoWhereAnyNameWillDo) {
  TestOptions any = options();
  any.config.any_name = true;
  TestApi server(any);
  EXPECT_EQ(remove(server, R"({"model":"org/name"})").status, 200);
  EXPECT_EQ(remove(server, R"({"model":"m:latest"})").status, 400);
  EXPECT_EQ(desk.asked(), std::vector<std::string>{"remove org/name"});
}

TEST_F(OllamaPulls, AskForTheScopeAdmin) {
  TestOptions keyed = options();
  keyed.config.api_keys = {{.secret = "k", .name = "k"}};
  TestApi server(keyed);
  const auto refused =
      server.post("/api/pull", R"({"model":"org/name"})", "Authorization: Bearer k\r\n");
  EXPECT_EQ(refused.status, 403);
  EXPECT_TRUE(desk.asked().empty());
}

TEST(Ollama, RunsForThoseThatAcceptNoHtml) {
  TestApi server;
  EXPECT_EQ(server.get("/", "Accept: */*\r\n").body, "Ollama is running");
  EXPECT_EQ(server.get("/").body, "Ollama is running");
  EXPECT_EQ(server.get("/api/version").body, R"({"version":"0.12.0"})");
}

TEST(Ollama, IsNotThereWhereItIsOff) {
  TestOptions options;
  options.config.ollama = false;
  TestApi server(options);
  EXPECT_EQ(server.get("/api/tags").status, 404);
  EXPECT_EQ(server.post("/api/chat", chat()).status, 404);
  EXPECT_NE(server.get("/").body.find("Model: m\n"), std::string::npos);
  EXPECT_EQ(server.get("/openapi.json").body.find("\"/api/"), std::string::npos);
}

}  // namespace
}  // namespace weir::api::ollama
