// Scores of documents over a socket and through the real engine, by a model whose next word is
// known; and which checkpoints are taken for rerankers.
#include "api/vectors/rerank.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "api/serving/rerank_config.h"
#include "api/test_api.h"
#include "api/vectors/rerank_request.h"

namespace weir::api::vectors {
namespace {

// The prompt ends with the document's last letter, and the model says the one after it: with the
// yes of 'B' and the no of 'C', A is surely a fit, B surely none, and other letters are undecided.
TestOptions judge(bool roles = true) {
  TestOptions options;
  options.config.rerank = {.yes = 'B', .no = 'C', .roles = roles};
  options.chat_template =
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
      "{% if enable_thinking %}[thinks]{% endif %}";
  return options;
}

// What the model's logits of 30 and 0 make of yes against no.
const double kSure = 1 / (1 + std::exp(-30.0)), kSurelyNot = 1 / (1 + std::exp(30.0));

struct Scored {
  int64_t index = -1;
  double score = 0;
};

std::vector<Scored> scored(const std::string& body, const char* list, const char* key) {
  const auto doc = JsonDoc::parse(body);
  std::vector<Scored> found;
  if (!doc) return found;
  const auto items = json_get(doc->root().get_object().value_unsafe(), list);
  EXPECT_TRUE(items) << body;
  if (!items) return found;
  for (const JsonValue item : items->get_array())
    found.push_back({static_cast<int64_t>(item["index"]), static_cast<double>(item[key])});
  return found;
}

void expect_scores(const std::vector<Scored>& found, const std::vector<Scored>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].index, expected[i].index) << i;
    EXPECT_NEAR(found[i].score, expected[i].score, 1e-6 * expected[i].score) << i;
  }
}

TEST(Rerank, OrdersDocumentsByTheOddsOfYes) {
  TestApi server(judge());
  const std::string body = R"({"query":"q","documents":["xB",{"text":"xA"},"xM","A"]})";
  for (const char* path : {"/v1/rerank", "/rerank"}) {
    const auto answer = server.post(path, body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    expect_scores(scored(answer.body, "results", "relevance_score"),
                  {{1, kSure}, {3, kSure}, {2, 0.5}, {0, kSurelyNot}});
    EXPECT_EQ(answer.body.find("document"), std::string::npos) << answer.body;
    // Four times "[query]q[document]" and 2, 2, 2 and 1 letters.
    EXPECT_TRUE(answer.body.starts_with(R"({"id":"rerank-)")) << answer.body;
    EXPECT_NE(answer.body.find(R"(","object":"list","model":"m","results":[)"), std::string::npos);
    EXPECT_TRUE(answer.body.ends_with(R"(],"usage":{"prompt_tokens":79,"total_tokens":79}})"))
        << answer.body;
  }
}

TEST(Rerank, GivesTheBestAndTheirTexts) {
  TestApi server(judge());
  const std::string body =
      server
          .post("/v1/rerank",
                R"({"query":"q","documents":["B","\"\n A"],"top_n":1,"return_documents":true})")
          .body;
  expect_scores(scored(body, "results", "relevance_score"), {{1, kSure}});
  EXPECT_NE(body.find(R"("document":{"text":"\"\n A"})"), std::string::npos) << body;
  EXPECT_EQ(
      scored(server.post("/v1/rerank", R"({"query":"q","documents":["A","B"],"top_n":9})").body,
             "results", "relevance_score")
          .size(),
      2u);
}

TEST(Rerank, AnswersTeisClientsWithAnArray) {
  TestApi server(judge());
  const auto answer =
      server.post("/rerank", R"({"query":"q","texts":["xB","xA"],"return_text":true})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_TRUE(answer.body.starts_with(R"([{"index":1,"score":1,"text":"xA"},{"index":0,)") ||
              answer.body.starts_with(R"([{"index":1,"score":0.99)"))
      << answer.body;
  EXPECT_TRUE(answer.body.ends_with(R"("text":"xB"}])")) << answer.body;
  const auto raw = server.post("/rerank", R"({"query":"q","texts":["xB","xA"],"raw_scores":true})");
  const auto doc = JsonDoc::parse(raw.body);
  EXPECT_NEAR(double(doc->root().at_pointer("/0/score").value()), 30, 1e-3) << raw.body;
  EXPECT_NEAR(double(doc->root().at_pointer("/1/score").value()), -30, 1e-3) << raw.body;
}

TEST(Rerank, AnswersCoheresClients) {
  TestApi server(judge());
  const auto answer =
      server.post("/v2/rerank", R"({"model":"m","query":"q","documents":["xB","xA"],"top_n":1})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_TRUE(answer.body.starts_with(R"({"id":"rerank-)")) << answer.body;
  EXPECT_NE(answer.body.find(R"("meta":{"api_version":{"version":"2",)"), std::string::npos);
  expect_scores(scored(answer.body, "results", "relevance_score"), {{1, kSure}});
  EXPECT_EQ(server.post("/v2/rerank", R"({"query":"q","texts":["A"]})").status, 400);
}

TEST(Rerank, CutsDocumentsWhereAskedTo) {
  TestOptions options = judge();
  options.context = 64;
  TestApi server(options);
  const std::string longer = "\"A" + std::string(100, 'x') + "\"";
  const std::string body = R"({"query":"q","documents":[)" + longer + "]";
  EXPECT_EQ(server.post("/v1/rerank", body + "}").status, 400);
  // What is left of it ends with A.
  for (const char* more : {R"(,"max_tokens_per_doc":1)", R"(,"truncate_prompt_tokens":23)"}) {
    const auto answer = server.post("/v1/rerank", body + more + "}");
    EXPECT_EQ(answer.status, 200) << answer.body;
    expect_scores(scored(answer.body, "results", "relevance_score"), {{0, kSure}});
  }
  const auto fits =
      server.post("/rerank", R"({"query":"q","texts":[)" + longer + R"(],"truncate":true})");
  EXPECT_EQ(fits.status, 200) << fits.body;
}

TEST(Score, KnowsBothPairsOfNames) {
  TestApi server(judge());
  const auto answer = server.post("/score", R"({"queries":"q","documents":["B","A"]})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_TRUE(answer.body.starts_with(R"({"id":"score-)")) << answer.body;
  expect_scores(scored(answer.body, "data", "score"), {{0, kSurelyNot}, {1, kSure}});
}

TEST(Score, KeepsTheOrder) {
  TestApi server(judge());
  const auto answer = server.post("/v1/score", R"({"text_1":"q","text_2":["B","A","M"]})");
  EXPECT_EQ(answer.status, 200) << answer.body;
  expect_scores(scored(answer.body, "data", "score"), {{0, kSurelyNot}, {1, kSure}, {2, 0.5}});
  expect_scores(
      scored(server.post("/v1/score", R"({"text_1":"q","text_2":"A"})").body, "data", "score"),
      {{0, kSure}});
  // Pairs: the prompts have as many tokens as their own query.
  const auto pairs = server.post("/v1/score", R"({"text_1":["q","qq"],"text_2":["A","B"]})");
  expect_scores(scored(pairs.body, "data", "score"), {{0, kSure}, {1, kSurelyNot}});
  EXPECT_NE(pairs.body.find(R"("prompt_tokens":39)"), std::string::npos) << pairs.body;
}

TEST(Rerank, AsksWithoutRolesInTheWordsOfTheTraining) {
  TestApi server(judge(/*roles=*/false));
  const auto tokens = [&](const std::string& more) {
    const std::string body =
        server.post("/v1/rerank", R"({"query":"Q","documents":["A"])" + more + "}").body;
    expect_scores(scored(body, "results", "relevance_score"), {{0, kSure}});
    const size_t at = body.find(R"("prompt_tokens":)") + 16;
    return std::stoi(body.substr(at));
  };
  EXPECT_EQ(tokens(R"(,"instruction":"xyz")") - tokens(R"(,"instruction":"")"), 3);
  EXPECT_GT(tokens(""), tokens(R"(,"instruction":"xyz")"));
}

TEST(Rerank, IsRefusedWhereTheModelIsNone) {
  TestApi server;
  for (const auto& [path, body] : {std::pair{"/v1/rerank", R"({"query":"q","documents":["A"]})"},
                                   {"/v1/score", R"({"text_1":"q","text_2":"A"})"}}) {
    const auto refused = server.post(path, body);
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(error_code(refused.body), "unsupported_endpoint");
    EXPECT_NE(refused.body.find("--reranker yes-no"), std::string::npos) << refused.body;
  }
}

TEST(Rerank, NamesWhatIsWrong) {
  TestOptions options = judge();
  options.context = 64;
  TestApi server(options);
  const auto error = [&](const char* path, const std::string& body, const char* param,
                         const char* code) {
    const auto refused = server.post(path, body);
    EXPECT_EQ(refused.status, std::string_view(code) == "model_not_found" ? 404 : 400) << body;
    EXPECT_EQ(error_code(refused.body), code) << refused.body;
    EXPECT_NE(refused.body.find(R"("param":")" + std::string(param) + "\""), std::string::npos)
        << refused.body;
  };
  const char* rerank = "/v1/rerank";
  error(rerank, R"({"documents":["A"]})", "query", "missing_required_parameter");
  error(rerank, R"({"query":1,"documents":["A"]})", "query", "invalid_type");
  error(rerank, R"({"query":"q"})", "documents", "missing_required_parameter");
  error(rerank, R"({"query":"q","documents":"A"})", "documents", "invalid_type");
  error(rerank, R"({"query":"q","documents":[]})", "documents", "invalid_value");
  error(rerank, R"({"query":"q","documents":["A",1]})", "documents[1]", "invalid_type");
  error(rerank, R"({"query":"q","documents":[{}]})", "documents[0].text",
        "missing_required_parameter");
  error(rerank, R"({"query":"q","documents":[{"text":1}]})", "documents[0].text", "invalid_type");
  error(rerank, R"({"query":"q","documents":["A"],"top_n":-1})", "top_n", "invalid_value");
  error(rerank, R"({"query":"q","documents":["A"],"top_n":"1"})", "top_n", "invalid_type");
  error(rerank, R"({"query":"q","documents":["A"],"model":"gpt"})", "model", "model_not_found");
  error(rerank, R"({"query":"q","documents":["A",")" + std::string(60, 'a') + "\"]}",
        "documents[1]", "context_length_exceeded");
  std::string many = "\"A\"";
  for (size_t i = 0; i < kDocumentsMax; ++i) many += ",\"A\"";
  error(rerank, R"({"query":"q","documents":[)" + many + "]}", "documents", "invalid_value");
  error("/v1/score", R"({"text_2":"A"})", "text_1", "missing_required_parameter");
  error("/v1/score", R"({"text_1":"q","text_2":3})", "text_2", "invalid_type");
  error("/v1/score", R"({"text_1":["q","q"],"text_2":["A","A","A"]})", "text_1", "invalid_value");
}

TEST(Rerank, TakesMoreDocumentsThanTheQueueHolds) {
  TestOptions options = judge();
  options.queue_max = 8;
  TestApi server(options);
  std::string documents = "\"A\"";
  for (int i = 1; i < 100; ++i) documents += i % 2 ? ",\"B\"" : ",\"A\"";
  const auto answer = server.post("/v1/rerank", R"({"query":"q","documents":[)" + documents + "]}");
  const auto found = scored(answer.body, "results", "relevance_score");
  ASSERT_EQ(found.size(), 100u);
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(found[i].index, static_cast<int64_t>(2 * i));
}

// Documents of so many letters that end as those of `best` say.
std::string documents_body(size_t documents, size_t letters, const std::string& more = {}) {
  std::string body = R"({"query":"q","return_documents":true,"documents":[)";
  for (size_t i = 0; i < documents; ++i)
    body += (i ? ",\"" : "\"") + std::string(letters, 'x') + (i % 2 ? "A\"" : "B\"");
  return body + "]" + more + "}";
}

TEST(Rerank, SendsLongAnswersInPiecesAndStopsWhenTheClientGoes) {
  TestOptions options = judge();
  options.config.stream_pause_bytes = 16 << 10;
  TestApi server(options);
  const std::string body = documents_body(300, 3000);
  const auto answer = server.post("/v1/rerank", body);
  EXPECT_EQ(answer.header("Transfer-Encoding"), "chunked");
  const auto found = scored(answer.body, "results", "relevance_score");
  ASSERT_EQ(found.size(), 300u);
  for (size_t i = 0; i < 150; ++i) EXPECT_EQ(found[i].index, static_cast<int64_t>(2 * i + 1));
  // The connection goes on; an older client reads to its end.
  RawClient stays(server.port()), older(server.port());
  for (const std::string& next : {body, documents_body(3, 10), body}) {
    stays.send(net::post("/v1/rerank", next));
    EXPECT_EQ(stays.read_response().status, 200);
  }
  older.send("POST /v1/rerank HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) +
             "\r\n\r\n" + body);
  const std::string whole = older.read_to_end();
  EXPECT_EQ(scored(whole.substr(whole.find("\r\n\r\n") + 4), "results", "relevance_score").size(),
            300u);
  RawClient leaves(server.port(), "127.0.0.1", 4096);
  leaves.send(net::post("/v1/rerank", body));
  leaves.read_some();  // The answer has begun.
  leaves.reset();
  EXPECT_TRUE(
      server.eventually([&] { return server.on_loop([&] { return server.api().idle(); }); }));
  EXPECT_EQ(server.post("/v1/rerank", R"({"query":"q","documents":["A"]})").status, 200);
}

TEST(Rerank, SaysForGoodWhatMemoryNeverAllows) {
  TestOptions options = judge();
  options.config.log_bytes_max = 5 << 19;  // One caller gets 2 MiB bit by bit.
  TestApi server(options);
  const auto refused = server.post("/v1/rerank", documents_body(700, 2000));
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_NE(refused.body.find("more than the 2097152 that this server"), std::string::npos);
  EXPECT_EQ(refused.header("Retry-After"), "");
  // A long query is in memory once, however many documents it has.
  std::string query = R"({"query":")" + std::string(3000, 'q') + R"(","documents":["A")";
  for (int i = 0; i < 500; ++i) query += R"(,"B")";
  EXPECT_EQ(server.post("/v1/rerank", query + "]}").status, 200);
}

// What the settings of a model's files become. Words of this tokenizer are bytes.
Result<RerankConfig> config_of(const card::RerankSettings& made, std::string_view choice = "auto",
                               std::string_view chat_template = "{{ messages }}") {
  const auto tokenizer = text::Tokenizer::load(byte_tokenizer_json());
  return rerank_config(made, **tokenizer, chat_template, choice);
}

TEST(RerankConfig, IsThatOfTheFiles) {
  EXPECT_FALSE(config_of({})->reranks());
  card::RerankSettings ids;
  ids.tokens = {9, 7};
  ids.roles = true;
  const auto module = config_of(ids);
  ASSERT_TRUE(module) << module.error().message;
  EXPECT_EQ(module->yes, 9);
  EXPECT_EQ(module->no, 7);
  EXPECT_TRUE(module->roles);
  EXPECT_FALSE(config_of(ids, "none")->reranks());
  card::RerankSettings letters;
  letters.words = {"y", "n"};
  const auto words = config_of(letters);
  ASSERT_TRUE(words) << words.error().message;
  EXPECT_EQ(words->yes, 'y');
  EXPECT_EQ(words->no, 'n');
  EXPECT_FALSE(words->roles);
  EXPECT_TRUE(config_of(letters, "auto",
                        "{% if m.role == 'query' %}{% elif m.role == \"document\" %}{% endif %}")
                  ->roles);
}

TEST(RerankConfig, RefusesWhatIsNotDone) {
  const auto half = config_of({.refusal = "names no false_token_id"});
  ASSERT_TRUE(half);
  EXPECT_FALSE(half->reranks());
  EXPECT_EQ(half->refusal, "names no false_token_id");
  card::RerankSettings letters;
  letters.words = {"y", "n"};
  const auto mute = config_of(letters, "auto", "");
  EXPECT_FALSE(mute->reranks());
  EXPECT_NE(mute->refusal.find("chat template"), std::string::npos);
  const auto forced = config_of({}, "yes-no");
  ASSERT_FALSE(forced) << "three bytes are three tokens";
  EXPECT_NE(forced.error().message.find("--reranker yes-no"), std::string::npos);
}

}  // namespace
}  // namespace weir::api::vectors
