// Embeddings over a socket and through the real engine, of a model whose hidden states are known.
#include "api/vectors/embeddings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "api/test_api.h"
#include "base/base64.h"

namespace weir::api::vectors {
namespace {

using Vector = std::vector<float>;

Vector unit(Vector vector) {
  double sum = 0;
  for (const float x : vector) sum += double{x} * double{x};
  for (float& x : vector) x = static_cast<float>(x / std::sqrt(sum));
  return vector;
}

std::vector<Vector> one(const Vector& vector) { return {vector}; }

Vector state(int32_t token) {
  const auto of = hidden_of(token);
  return {of.begin(), of.end()};
}

// The vectors of an answer, by index.
std::vector<Vector> vectors(const std::string& body) {
  const auto doc = JsonDoc::parse(body);
  if (!doc) return {};
  std::vector<Vector> found;
  const auto data = json_get(doc->root().get_object().value_unsafe(), "data");
  EXPECT_TRUE(data) << body;
  if (!data) return {};
  for (const JsonValue item : data->get_array()) {
    EXPECT_EQ(std::string_view(item["object"]), "embedding");
    EXPECT_EQ(static_cast<int64_t>(item["index"]), std::ssize(found));
    Vector& vector = found.emplace_back();
    for (const double x : item["embedding"].get_array()) vector.push_back(static_cast<float>(x));
  }
  return found;
}

std::vector<Vector> embed(const TestApi& server, const std::string& fields) {
  const auto answer = server.post("/v1/embeddings", "{" + fields + "}");
  EXPECT_EQ(answer.status, 200) << answer.body;
  return vectors(answer.body);
}

TestOptions with(const card::EmbeddingSettings& embedding) {
  TestOptions options;
  options.config.embedding = embedding;
  return options;
}

TEST(Embeddings, AreTheLastStateNormalised) {
  TestApi server;
  const auto answer = server.post("/v1/embeddings", R"({"model":"m","input":"AZ","user":"u"})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(vectors(answer.body), one(unit(state('Z'))));
  EXPECT_TRUE(answer.body.starts_with(
      R"({"object":"list","data":[{"object":"embedding","index":0,"embedding":[)"))
      << answer.body;
  EXPECT_TRUE(
      answer.body.ends_with(R"(],"model":"m","usage":{"prompt_tokens":2,"total_tokens":2}})"))
      << answer.body;
}

TEST(Embeddings, TakeEveryFormOfInput) {
  TestApi server;
  const std::vector<Vector> both = {unit(state('B')), unit(state('C'))};
  EXPECT_EQ(embed(server, R"("input":["AB","C"])"), both);
  EXPECT_EQ(embed(server, R"("input":[[65,66],[67]])"), both);
  EXPECT_EQ(embed(server, R"("input":[65,66])"), one(both[0]));
  EXPECT_EQ(embed(server, R"("input":["B",[67]])"), both);
}

TEST(Embeddings, ComeInBase64AsLittleEndianFloats) {
  TestApi server;
  const std::string body =
      server.post("/v1/embeddings", R"({"input":["A","B"],"encoding_format":"base64"})").body;
  for (const int32_t token : {'A', 'B'}) {
    const Vector expected = unit(state(token));
    std::string text;
    append_base64(text, std::as_bytes(std::span(expected)));
    EXPECT_EQ(text.size(), 24u);
    EXPECT_NE(body.find(R"("embedding":")" + text + "\""), std::string::npos) << body;
  }
}

TEST(Base64, IsThatOfTheRfc) {
  // RFC 4648, section 10.
  const std::pair<const char*, const char*> kVectors[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, expected] : kVectors) {
    std::string text;
    append_base64(text, std::as_bytes(std::span(bytes, std::strlen(bytes))));
    EXPECT_EQ(text, expected);
  }
}

TEST(Embeddings, AreCutAndNormalisedAgain) {
  TestApi server;
  EXPECT_EQ(embed(server, R"("input":"C","dimensions":2)"), one(unit({67, 1})));
  EXPECT_EQ(embed(server, R"("input":"C","dimensions":4)"), one(unit(state('C'))));
  for (const char* wrong : {"0", "5", "-1", "\"2\"", "1.5"}) {
    const auto refused =
        server.post("/v1/embeddings", R"({"input":"C","dimensions":)" + std::string(wrong) + "}");
    EXPECT_EQ(refused.status, 400) << wrong;
    EXPECT_NE(refused.body.find(R"("param":"dimensions")"), std::string::npos) << refused.body;
  }
}

TEST(Embeddings, HaveTheNormThatIsAsked) {
  TestApi server;
  EXPECT_EQ(embed(server, R"("input":"D","normalize":false)"), one(state('D')));
  EXPECT_EQ(embed(server, R"("input":"D","embd_normalize":-1)"), one(state('D')));
  EXPECT_EQ(embed(server, R"("input":"D","embd_normalize":2)"), one(unit(state('D'))));
  Vector vector = {3, -4};
  normalise(vector, 1);
  EXPECT_EQ(vector, (Vector{3.0f / 7, -4.0f / 7}));
  vector = {3, -4};
  normalise(vector, kNormMax);
  EXPECT_EQ(vector, (Vector{24570, -32760}));
  vector = {1, 2, 2};
  normalise(vector, 3);
  EXPECT_NEAR(vector[1], 2 / std::cbrt(17.0), 1e-6);
  vector = {0, 0};
  normalise(vector, kNormEuclid);
  EXPECT_EQ(vector, (Vector{0, 0}));
}

TEST(Embeddings, ArePooledAsTheModelSays) {
  {
    TestApi server(with({.pooling = card::Pooling::kMean, .normalise = false}));
    const Vector a = state('A'), d = state('D');
    Vector mean;
    for (size_t i = 0; i < a.size(); ++i) mean.push_back((a[i] + d[i]) * 0.5f);
    EXPECT_EQ(embed(server, R"("input":"AD")"), one(mean));
    EXPECT_EQ(embed(server, R"("input":"D","normalize":true)"), one(unit(d)));
  }
  TestApi server(with({.pooling = card::Pooling::kCls}));
  EXPECT_EQ(embed(server, R"("input":"AD")"), one(unit(state('A'))));
}

TEST(Embeddings, BeginWithTheModelsInstruction) {
  card::EmbeddingSettings config{.pooling = card::Pooling::kCls};
  config.prompts = {{"query", "Q: "}, {"document", ""}};
  config.default_prompt = "query";
  TestApi server(with(config));
  EXPECT_EQ(embed(server, R"("input":"A")"), one(unit(state('Q'))));
  EXPECT_EQ(embed(server, R"("input":"A","prompt_name":"document")"), one(unit(state('A'))));
  const auto refused = server.post("/v1/embeddings", R"({"input":"A","prompt_name":"x"})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find(R"("param":"prompt_name")"), std::string::npos) << refused.body;
}

TEST(Embeddings, AreRefusedWhereTheyWouldNotBeTheModels) {
  TestApi server(with({.refusal = "modules.json asks for a module 'Dense'"}));
  const auto refused = server.post("/v1/embeddings", R"({"input":"A"})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(error_code(refused.body), "unsupported_endpoint");
  EXPECT_NE(refused.body.find("Dense"), std::string::npos);
}

TEST(Embeddings, NameWhatIsWrong) {
  TestApi server({.context = 64});
  const auto error = [&](const std::string& body, const char* param, const char* code) {
    const auto refused = server.post("/v1/embeddings", body);
    EXPECT_EQ(refused.status, refused.body.find("model_not_found") == std::string::npos ? 400 : 404)
        << body;
    EXPECT_EQ(error_code(refused.body), code) << refused.body;
    EXPECT_NE(refused.body.find(R"("param":")" + std::string(param) + "\""), std::string::npos)
        << refused.body;
  };
  error("{}", "input", "missing_required_parameter");
  error(R"({"input":null})", "input", "missing_required_parameter");
  error(R"({"input":7})", "input", "invalid_type");
  error(R"({"input":[]})", "input", "invalid_value");
  error(R"({"input":""})", "input", "invalid_value");
  error(R"({"input":["a",""]})", "input[1]", "invalid_value");
  error(R"({"input":["a",{}]})", "input[1]", "invalid_type");
  error(R"({"input":[[65],[]]})", "input[1]", "invalid_value");
  error(R"({"input":[[65,261]]})", "input[0][1]", "invalid_value");
  error(R"({"input":[-1]})", "input[0]", "invalid_value");
  error(R"({"input":"a","encoding_format":"int8"})", "encoding_format", "invalid_value");
  error(R"({"input":"a","encoding_format":1})", "encoding_format", "invalid_type");
  error(R"({"input":"a","normalize":1})", "normalize", "invalid_type");
  error(R"({"input":"a","embd_normalize":65})", "embd_normalize", "invalid_value");
  error(R"({"input":"a","model":"gpt"})", "model", "model_not_found");
  error(R"({"input":")" + std::string(65, 'a') + "\"}", "input", "context_length_exceeded");
  EXPECT_EQ(embed(server, R"("input":")" + std::string(64, 'a') + "\"").size(), 1u);
  EXPECT_EQ(error_code(server.post("/v1/embeddings", "[]").body), "null");
  EXPECT_EQ(server.get("/v1/embeddings").status, 405);
}

TEST(Embeddings, AreAsManyAsOpenAiAllowsThroughAShortQueue) {
  TestApi server({.queue_max = 64});
  std::string inputs;
  for (size_t i = 0; i < kEmbeddingInputsMax; ++i)
    inputs += (i ? ",[" : "[") + std::to_string(i % 250 + 1) + "]";
  const auto found = embed(server, R"("input":[)" + inputs + "]");
  ASSERT_EQ(found.size(), kEmbeddingInputsMax);
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], unit(state(static_cast<int32_t>(i % 250) + 1))) << i;
  const auto refused = server.post("/v1/embeddings", R"({"input":[)" + inputs + ",[5]]}");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find(R"("param":"input")"), std::string::npos) << refused.body;
}

TEST(Embeddings, LeaveRoomForOthersAndNothingBehindWhenTheirClientGoes) {
  TestApi server({.queue_max = 8, .step_us = 2000});
  std::string inputs = "[1]";
  for (int i = 0; i < 1000; ++i) inputs += ",[65,66]";
  RawClient client(server.port());
  client.send(net::post("/v1/embeddings", R"({"input":[)" + inputs + "]}"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 2; }));
  EXPECT_EQ(server.complete(R"(,"max_tokens":3)").status, 200);
  client.close();
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 0; }));
}

TEST(Embeddings, AreSentAwayWhenTheQueueIsFullOrTheServerEnds) {
  TestApi server({.queue_max = 2, .step_us = 1000});
  RawClient first(server.port());
  first.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":4000,"n":2})"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 2; }));
  const auto refused = server.post("/v1/embeddings", R"({"input":"A"})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  first.close();
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 0; }));
  std::string inputs = "[1]";
  for (int i = 0; i < 2000; ++i) inputs += ",[65,66]";
  RawClient second(server.port());
  second.send(net::post("/v1/embeddings", R"({"input":[)" + inputs + "]}"));
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 1; }));
  server.on_loop([&] {
    server.api().cancel_all();
    return 0;
  });
  EXPECT_EQ(second.read_response().status, 503);
}

// So many inputs of one token.
std::string inputs_body(size_t inputs, const std::string& more = {}) {
  std::string body = R"({"input":[[65])";
  for (size_t i = 1; i < inputs; ++i) body += ",[" + std::to_string(65 + i % 26) + "]";
  return body + "]" + more + "}";
}

TEST(Embeddings, HaveABoundOfMemory) {
  TestOptions options;
  options.config.log_bytes_max = 4'000;
  TestApi server(options);
  EXPECT_EQ(embed(server, R"("input":"A")").size(), 1u);
  const auto refused = server.post("/v1/embeddings", inputs_body(12));
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("fewer inputs"), std::string::npos) << refused.body;
}

TEST(Embeddings, GiveTheirMemoryBackWithTheAnswer) {
  TestOptions options;
  // Room for one such request (its text takes 77 KB), but not for two.
  options.config.log_bytes_max = 160'000;
  TestApi server(options);
  const std::string request = net::post("/v1/embeddings", inputs_body(300));
  RawClient client(server.port());
  for (int i = 0; i < 5; ++i) {
    client.send(request);
    EXPECT_EQ(client.read_response().status, 200) << i;
  }
  EXPECT_EQ(server.post("/v1/embeddings", inputs_body(450)).status, 400);
  // Also those whose client goes.
  RawClient leaves(server.port());
  server.model().step_us = 100'000;
  leaves.send(request);
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() > 0; }));
  leaves.close();
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 0; }));
  server.model().step_us = 0;
  EXPECT_TRUE(server.eventually(
      [&] { return server.post("/v1/embeddings", inputs_body(300)).status == 200; }));
}

TEST(Embeddings, TurnNobodyElseAway) {
  TestOptions options{.queue_max = 32, .step_us = 500};
  for (const char* name : {"a", "b", "c", "d", "other"})
    options.config.api_keys.push_back({.secret = name, .name = name});
  TestApi server(options);
  const auto key = [](const char* name) {
    return "Authorization: Bearer " + std::string(name) + "\r\n";
  };
  std::vector<std::unique_ptr<RawClient>> clients;
  for (const char* name : {"a", "b", "c", "d"})
    for (int i = 0; i < 3; ++i) {
      clients.push_back(std::make_unique<RawClient>(server.port()));
      clients.back()->send(net::post("/v1/embeddings", inputs_body(300), key(name)));
    }
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() > 8; }));
  for (int i = 0; i < 50; ++i) {
    EXPECT_LE(server.engine().open(), 16);
    EXPECT_EQ(
        server.post("/v1/completions", R"({"prompt":"A","max_tokens":2})", key("other")).status,
        200);
  }
  for (const auto& client : clients) EXPECT_EQ(client->read_response().status, 200);
}

}  // namespace
}  // namespace weir::api::vectors
