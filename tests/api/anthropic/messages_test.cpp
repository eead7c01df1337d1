// /v1/messages of a whole server: answers to the byte, streams, stops, errors in Anthropic's form.
#include "api/test_api.h"

namespace weir::api::anthropic {
namespace {

std::string body(const std::string& more = {}, const std::string& last = "Hi") {
  return R"({"model":"m","max_tokens":20,"temperature":0,"messages":[{"role":"user","content":")" +
         last + "\"}]" + more + "}";
}

// A prompt that is continued goes round the alphabet.
std::string prefill(const std::string& more = {}) {
  return R"({"model":"m","max_tokens":5,"temperature":0,"messages":[{"role":"user","content":"x"},)"
         R"({"role":"assistant","content":"A"}])" +
         more + "}";
}

std::string without_ids(std::string text) {
  replace_runs(text, R"("id":"msg_)", "0123456789abcdef", 32, "ID");
  replace_runs(text, R"("request_id":"req_)", "0123456789abcdef", 32, "ID");
  return text;
}

std::string error_of(const net::RawClient::Response& response) {
  const auto doc = JsonDoc::parse(response.body);
  if (!doc) return "not JSON: " + response.body;
  std::string_view outer, type, message, id;
  const JsonValue root = doc->root();
  if (root["type"].get(outer) || root["error"]["type"].get(type) ||
      root["error"]["message"].get(message) || root["request_id"].get(id))
    return "another shape: " + response.body;
  if (outer != "error" || message.empty() || id != response.header("request-id"))
    return "wrong: " + response.body;
  return std::to_string(response.status) + " " + std::string(type);
}

TEST(Messages, AWholeAnswer) {
  TestApi server;
  const auto response = server.post("/v1/messages", body(), "anthropic-version: 2023-06-01\r\n");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.header("request-id"), response.header("x-request-id"));
  EXPECT_EQ(without_ids(response.body),
            R"({"id":"msg_ID","type":"message","role":"assistant","model":"m","content":[)"
            "{\"type\":\"text\",\"text\":\"hey \xc3\xa9!\"}],"
            R"("stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":19,)"
            R"("cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":7,)"
            R"("output_tokens_details":{"thinking_tokens":0}}})");
}

TEST(Messages, WhyItEnded) {
  TestApi server;
  const auto has = [&](const std::string& request, const std::string& part) {
    const auto response = server.post("/v1/messages", request);
    EXPECT_NE(response.body.find(part), std::string::npos) << response.body;
  };
  // An assistant's last words are continued.
  has(prefill(), R"("text":"BCDEF"}],"stop_reason":"max_tokens","stop_sequence":null)");
  has(prefill(R"(,"stop_sequences":["XY","DE"])"),
      R"("text":"BC"}],"stop_reason":"stop_sequence","stop_sequence":"DE")");
}

TEST(Messages, AStreamIsTheSameAnswerInEvents) {
  TestApi server;
  net::RawClient client(server.port());
  client.send(net::post("/v1/messages", prefill(R"(,"stream":true,"stop_sequences":["E"])")));
  const auto response = client.read_response();
  EXPECT_EQ(response.status, 200);
  EXPECT_TRUE(response.header("Content-Type").starts_with("text/event-stream"));
  std::string order, text, rest = response.body;
  while (!rest.empty()) {
    const size_t end = rest.find("\n\n");
    ASSERT_NE(end, std::string::npos) << rest;
    const std::string event = rest.substr(0, end);
    rest.erase(0, end + 2);
    const size_t line = event.find("\ndata: ");
    ASSERT_TRUE(event.starts_with("event: ") && line != std::string::npos) << event;
    const std::string name = event.substr(7, line - 7);
    const auto doc = JsonDoc::parse(event.substr(line + 7));
    ASSERT_TRUE(doc) << event;
    std::string_view type, piece, stop;
    ASSERT_EQ(doc->root()["type"].get(type), simdjson::SUCCESS);
    EXPECT_EQ(type, name);
    if (name != "content_block_delta") order += name + " ";
    if (!doc->root()["delta"]["text"].get(piece)) text += piece;
    if (!doc->root()["delta"]["stop_sequence"].get(stop)) order += std::string(stop) + " ";
  }
  EXPECT_EQ(order,
            "message_start content_block_start content_block_stop message_delta E message_stop ");
  EXPECT_EQ(text, "BCD");
}

TEST(Messages, SilenceIsAPing) {
  TestOptions options;
  options.config.keep_alive_ms = 100;
  options.step_us = 1'500'000;
  TestApi server(std::move(options));
  const auto response = server.post(
      "/v1/messages",
      R"({"model":"m","max_tokens":1,"stream":true,"messages":[{"role":"user","content":"x"}]})");
  EXPECT_TRUE(response.body.starts_with("event: ping\ndata: {\"type\":\"ping\"}\n\n"))
      << response.body;
  EXPECT_TRUE(response.body.ends_with("{\"type\":\"message_stop\"}\n\n")) << response.body;
}

TEST(Messages, AnErrorInMidStreamIsAnEventAndTheEnd) {
  TestOptions options;
  options.config.request_timeout_s = 0.5;
  options.step_us = 20'000;
  TestApi server(std::move(options));
  const auto response = server.post(
      "/v1/messages", R"({"model":"m","max_tokens":4000,"stream":true,"temperature":0,"messages":[)"
                      R"({"role":"user","content":"x"},{"role":"assistant","content":"A"}]})");
  EXPECT_EQ(response.status, 200);
  const size_t last = response.body.rfind("event: ");
  ASSERT_NE(last, std::string::npos);
  EXPECT_TRUE(response.body.substr(last).starts_with(
      R"(event: error)"
      "\n"
      R"(data: {"type":"error","error":{"type":"timeout_error","message":"The answer took)"))
      << response.body.substr(last);
  EXPECT_NE(response.body.find("message_start"), std::string::npos);
  EXPECT_EQ(response.body.find("message_stop"), std::string::npos);
}

TEST(Messages, ErrorsHaveAnthropicsShape) {
  TestOptions options;
  options.config.api_keys = {{.secret = "all"}, {.secret = "see", .scopes = {.api = false}}};
  options.context = 512;
  TestApi server(std::move(options));
  const std::string key = "x-api-key: all\r\n";
  const auto post = [&](const std::string& text, const std::string& headers) {
    return error_of(server.post("/v1/messages", text, headers));
  };
  EXPECT_EQ(post(body(), ""), "401 authentication_error");
  EXPECT_EQ(post(body(), "x-api-key: see\r\n"), "403 permission_error");
  EXPECT_EQ(post("{", key), "400 invalid_request_error");
  EXPECT_EQ(post(R"({"model":"m","messages":[{"role":"user","content":"x"}]})", key),
            "400 invalid_request_error");
  EXPECT_EQ(
      post(R"({"model":"other","max_tokens":1,"messages":[{"role":"user","content":"x"}]})", key),
      "404 not_found_error");
  EXPECT_EQ(error_of(server.get("/v1/messages", key)), "405 invalid_request_error");
  EXPECT_EQ(error_of(server.get("/v1/messages/batches", key)), "404 not_found_error");
  const auto longer = server.post("/v1/messages", body({}, std::string(600, 'x')), key);
  EXPECT_EQ(error_of(longer), "400 invalid_request_error");
  EXPECT_NE(longer.body.find(R"("message":"prompt is too long: 617 tokens > 512 maximum")"),
            std::string::npos)
      << longer.body;
}

TEST(Messages, ALimitOfTheKeyIsNotAFullServer) {
  TestOptions options;
  options.config.api_keys = {{.secret = "one", .requests_per_minute = 1}};
  TestApi server(std::move(options));
  const std::string key = "x-api-key: one\r\n";
  EXPECT_EQ(server.post("/v1/messages", body(), key).status, 200);
  const auto refused = server.post("/v1/messages", body(), key);
  EXPECT_EQ(error_of(refused), "429 rate_limit_error");
  EXPECT_FALSE(refused.header("Retry-After").empty());
}

TEST(Messages, ModelsHaveTheirFormToo) {
  TestApi server;
  const std::string version = "anthropic-version: 2023-06-01\r\n";
  const std::string model =
      R"({"type":"model","id":"m","display_name":"m","created_at":"2023-11-14T22:13:20Z"})";
  EXPECT_EQ(server.get("/v1/models", version).body,
            R"({"data":[)" + model + R"(],"has_more":false,"first_id":"m","last_id":"m"})");
  EXPECT_EQ(server.get("/v1/models?limit=1000&after_id=m", version).body,
            R"({"data":[],"has_more":false,"first_id":null,"last_id":null})");
  EXPECT_EQ(server.get("/v1/models/m", version).body, model);
  EXPECT_EQ(error_of(server.get("/v1/models/other", version)), "404 not_found_error");
  EXPECT_FALSE(server.get("/v1/models", version).header("request-id").empty());
  // Without the header it is OpenAI's.
  EXPECT_NE(server.get("/v1/models").body.find(R"("object":"list")"), std::string::npos);
  EXPECT_EQ(error_code(server.get("/v1/models/other").body), "model_not_found");
}

TEST(Messages, CountTokens) {
  TestApi server;
  const auto count = [&](const std::string& request) {
    return server.post("/v1/messages/count_tokens", request).body;
  };
  EXPECT_EQ(count(R"({"model":"m","messages":[{"role":"user","content":"Hi"}]})"),
            R"({"input_tokens":19})");
  EXPECT_EQ(count(R"({"model":"m","system":"Be","messages":[{"role":"user","content":"Hi"}],)"
                  R"("tools":[{"name":"f","input_schema":{}}]})"),
            R"({"input_tokens":37})");
  EXPECT_EQ(error_of(server.post("/v1/messages/count_tokens", "{}")), "400 invalid_request_error");
}

}  // namespace
}  // namespace weir::api::anthropic
