// What a person sees at `/`, and endpoints asked without `/v1`.
#include "api/pages/front_page.h"

#include <gtest/gtest.h>

#include "api/test_api.h"

namespace weir::api::pages {
namespace {

TEST(FrontPage, AnswersABrowserWithAPageAndOthersWithLines) {
  TestApi server;
  const auto page = server.get("/", "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8\r\n");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.header("Vary"), "Accept");
  for (const char* link : {"/openapi.json", "/health", "/metrics", "/props", "/v1/models"})
    EXPECT_NE(page.body.find("<a href=\"" + std::string(link) + "\">"), std::string::npos) << link;
  EXPECT_NE(page.body.find("<code>m</code>"), std::string::npos) << page.body;
  const auto text = server.get("/", "Accept: text/plain\r\n");
  EXPECT_EQ(text.status, 200);
  EXPECT_EQ(text.header("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_NE(text.body.find("Model: m\n"), std::string::npos) << text.body;
  EXPECT_EQ(server.post("/", "{}").status, 405);
}

TEST(FrontPage, HasAHead) {
  TestApi server;
  RawClient client(server.port());
  client.send("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string answer = client.read_to_end();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n")) << answer;
}

TEST(FrontPage, EscapesTheModelsName) {
  const FrontPage page{.version = "1", .model = "<b>&\"'", .has_chat = false};
  const std::string html = front_page_html(page);
  EXPECT_EQ(html.find("<b>"), std::string::npos) << html;
  EXPECT_NE(html.find("&lt;b&gt;&amp;&quot;&#39;"), std::string::npos) << html;
  EXPECT_NE(html.find("/v1/completions"), std::string::npos);
}

TEST(FrontPage, HidesTheModelWhereThereAreKeys) {
  TestOptions options;
  options.config.model_id = "secret-model";
  options.config.api_keys = {{.secret = "k", .name = "a"}};
  TestApi server(options);
  for (const char* accept : {"Accept: text/html\r\n", "Accept: text/plain\r\n", ""}) {
    const auto page = server.get("/", accept);
    EXPECT_EQ(page.status, 200);
    EXPECT_EQ(page.body.find("secret-model"), std::string::npos) << page.body;
  }
}

TEST(BarePaths, AreThoseOfTheVersion) {
  TestApi server;
  EXPECT_EQ(server.get("/models").body, server.get("/v1/models").body);
  EXPECT_EQ(server.get("/models/m").body, server.get("/v1/models/m").body);
  const auto chat = server.post("/chat/completions", TestApi::chat_body(R"(,"max_tokens":2)"));
  EXPECT_EQ(chat.status, 200);
  EXPECT_NE(chat.body.find(R"("object":"chat.completion")"), std::string::npos) << chat.body;
  EXPECT_EQ(server.post("/embeddings", R"({"input":"A"})").status, 200);
  EXPECT_EQ(server.post("/responses", R"({"input":"x","max_output_tokens":1})").status, 200);
  EXPECT_EQ(server.get("/responses/none").status, 404);
  // Anthropic's errors are in its own shape here, too.
  const auto message = server.post("/messages", "{}");
  EXPECT_EQ(message.status, 400);
  EXPECT_TRUE(message.body.starts_with(R"({"type":"error")")) << message.body;
}

}  // namespace
}  // namespace weir::api::pages
