#include "hub/client.h"

#include <gtest/gtest.h>

#include "scripted_hub.h"

namespace weir::hub {
namespace {

class ClientTest : public testing::Test {
 protected:
  ClientTest()
      : transport_([this](const Request& request) { return hub_(request); }),
        client_(*Client::create(scripted_settings(), transport_)) {
    hub_.files = {{"config.json", R"({"x":1})"},
                  {"model.safetensors", std::string(300'000, 'w') + "end"},
                  {"README.md", "not taken"}};
  }
  ~ClientTest() override { EXPECT_FALSE(transport_.leaked(kEndpoint)); }

  std::string error(const char* part, ScriptedAnswer answer, int times = 1) {
    for (int i = 0; i < times; ++i) hub_.first.push_back({part, answer});
    const Result<HubModel> model = client_.resolve(*ModelName::parse("org/name"));
    hub_.first.clear();
    return model ? "no error" : model.error().message;
  }
  double seconds() const {
    return std::chrono::duration<double>(transport_.now().time_since_epoch()).count();
  }

  ScriptedHub hub_;
  ScriptedTransport transport_;
  Client client_;
};

TEST_F(ClientTest, ResolvesANameToACommitAndItsFiles) {
  const Result<HubModel> model = client_.resolve(*ModelName::parse("org/name"));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->tree.commit, kCommit);
  EXPECT_EQ(model->tree.files.size(), 3u);
  ASSERT_EQ(model->files.size(), 2u);
  EXPECT_EQ(model->files[1].blob, blob_of(hub_.files["model.safetensors"], true));
}

TEST_F(ClientTest, FetchesRangesOverTheCdnWithoutItsToken) {
  const HubModel model = *client_.resolve(*ModelName::parse("org/name"));
  const TreeFile* weights = model.tree.find("model.safetensors");
  const TreeFile* config = model.tree.find("config.json");
  const auto texts = client_.fetch_ranges(
      model,
      std::vector<FileRange>{
          {weights, {299'998, 400'000}}, {config, {0, 100}}, {weights, {5, 5}}, {weights, {0, 2}}});
  ASSERT_TRUE(texts) << texts.error().message;
  EXPECT_EQ(*texts, (std::vector<std::string>{"wwend", R"({"x":1})", "", "ww"}));
  size_t heads = 0;
  for (const Request& request : transport_.requests) {
    if (request.head_only && request.url.ends_with("model.safetensors")) ++heads;
    if (request.url.starts_with(kCdn)) {
      EXPECT_TRUE(request.token.empty() && request.range);
    }
  }
  EXPECT_EQ(heads, 1u) << "all ranges of a file share its link";
}

TEST_F(ClientTest, ServersThatIgnoreRangesAreReadFromTheirBeginning) {
  hub_.ranges = false;
  const HubModel model = *client_.resolve(*ModelName::parse("org/name"));
  const auto texts = client_.fetch_ranges(
      model, std::vector<FileRange>{{model.tree.find("model.safetensors"), {299'998, 300'002}}});
  ASSERT_TRUE(texts) << texts.error().message;
  EXPECT_EQ((*texts)[0], "wwen");
}

TEST_F(ClientTest, ASmallFileIsCheckedAndKept) {
  const HubModel model = *client_.resolve(*ModelName::parse("org/name"));
  const TreeFile& config = *model.tree.find("config.json");
  EXPECT_FALSE(client_.fetch_file(model, config, 3));
  hub_.first.push_back({"resolve", {.headers = {}, .body = ""}});  // A head that says nothing.
  const ScriptedAnswer wrong{.status = 200, .body = R"({"x":2})"};
  hub_.first.push_back({"resolve", wrong});
  EXPECT_EQ(client_.fetch_file(model, config, 100).value_or(""), R"({"x":1})");
  const size_t before = transport_.requests.size();
  EXPECT_EQ(client_.fetch_file(model, config, 100).value_or(""), R"({"x":1})");
  EXPECT_EQ(transport_.requests.size(), before);
  ASSERT_NE(client_.fetched(config.blob), nullptr);
}

TEST_F(ClientTest, BytesThatAreWrongTwiceAreAnError) {
  const HubModel model = *client_.resolve(*ModelName::parse("org/name"));
  hub_.first.push_back({"resolve", {.headers = {}, .body = ""}});
  for (int i = 0; i < 2; ++i) hub_.first.push_back({"resolve", {.body = R"({"x":2})"}});
  const auto text = client_.fetch_file(model, *model.tree.find("config.json"), 100);
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().message.find("org/name/config.json: expected bytes whose hash"),
            std::string::npos)
      << text.error().message;
}

TEST_F(ClientTest, SaysPlainlyWhatIsWrong) {
  using Headers = std::vector<std::pair<std::string, std::string>>;
  for (const auto& [status, headers, part] : std::vector<std::tuple<int, Headers, const char*>>{
           {401, {}, "no such model on https://hub.example, or it is private"},
           {404, {{"x-error-code", "RepoNotFound"}}, "or it is private"},
           {403,
            {{"x-error-code", "GatedRepo"}},
            "accept its terms on https://hub.example/org/name"},
           {404, {{"x-error-code", "RevisionNotFound"}}, "no branch, tag or commit 'main'"},
           {403,
            {{"x-error-message", "Access to this resource is disabled."}},
            "Access to this resource is disabled."},
           {418, {{"x-error-message", "tea\r\n\x1b[31m"}}, "answers 418: tea???[31m"}}) {
    const std::string message = error("/revision/main", {.status = status, .headers = headers});
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(message.find("secret"), std::string::npos) << message;
  }
}

TEST_F(ClientTest, WaitsAsLongAsTheHubAsks) {
  hub_.first.push_back(
      {"/revision/main", {.status = 429, .headers = {{"ratelimit", R"("api";r=0;t=55)"}}}});
  std::string told;
  client_.on_wait([&](const std::string& why) { told = why; });
  const double begin = seconds();
  ASSERT_TRUE(client_.resolve(*ModelName::parse("org/name")));
  EXPECT_NEAR(seconds() - begin, 56, 1);
  EXPECT_NE(told.find("answers 429; again in 56 s"), std::string::npos) << told;
}

TEST_F(ClientTest, TriesFiveTimesAndThenSaysWhy) {
  const double begin = seconds();
  EXPECT_NE(error("/revision/main", {.status = 503}, 6).find("after five further tries"),
            std::string::npos);
  EXPECT_NEAR(seconds() - begin, 1 + 2 + 4 + 8 + 8, 1);
  EXPECT_EQ(error("/revision/main", {.status = 503}, 5), "no error");
  EXPECT_EQ(error("/revision/main", {.status = 0, .ending = Ending::kBroken}, 5), "no error");
  const size_t before = transport_.requests.size();
  EXPECT_EQ(error("/revision/main", {.status = 0, .ending = Ending::kRefused}),
            "the connection broke");
  EXPECT_EQ(transport_.requests.size(), before + 1) << "no second try";
}

TEST_F(ClientTest, TheApiIsFollowedWithinTheHubOnly) {
  EXPECT_EQ(error("/revision/main",
                  {.status = 307, .headers = {{"location", "/api/models/org/name/revision/main"}}}),
            "no error");
  EXPECT_NE(error("/revision/main",
                  {.status = 302, .headers = {{"location", "https://evil.example/api"}}})
                .find("another host, evil.example"),
            std::string::npos);
  EXPECT_NE(error("/tree/",
                  {.headers = {{"link", "<https://evil.example/x>; rel=\"next\""}}, .body = "[]"})
                .find("evil.example"),
            std::string::npos);
}

TEST_F(ClientTest, APageMayHaveANext) {
  const ScriptedAnswer first{
      .headers = {{"link", "<https://other/x>; rel=\"prev\", <" + kEndpoint +
                               "/api/models/org/name/tree/" + kCommit +
                               "?cursor=2>; rel=\"next\""}},
      .body = R"([{"type":"file","path":"first","size":1,"oid":")" + std::string(40, 'a') + "\"}]"};
  hub_.first.push_back({"/tree/", first});
  const Result<HubModel> model = client_.resolve(*ModelName::parse("org/name"));
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->tree.files.size(), 4u);
}

TEST_F(ClientTest, AFileMustBeWhatTheListSays) {
  const HubModel model = *client_.resolve(*ModelName::parse("org/name"));
  const std::vector<FileRange> range{{model.tree.find("model.safetensors"), {0, 5}}};
  using Headers = std::vector<std::pair<std::string, std::string>>;
  for (const auto& [headers, part] : std::vector<std::pair<Headers, const char*>>{
           {{{"x-linked-size", "7"}}, "expected bytes 300003"},
           {{{"x-linked-etag", std::string(64, 'a')}}, "expected hash"},
           {{{"x-repo-commit", std::string(40, 'd')}}, "expected commit"}}) {
    hub_.first.push_back({"resolve", {.status = 200, .headers = headers}});
    const auto texts = client_.fetch_ranges(model, range);
    ASSERT_FALSE(texts);
    EXPECT_NE(texts.error().message.find(part), std::string::npos) << texts.error().message;
  }
  hub_.first.push_back(
      {"cdn.example",
       {.status = 206, .headers = {{"content-range", "bytes 7-11/300003"}}, .body = "wwwww"}});
  EXPECT_FALSE(client_.fetch_ranges(model, range)) << "other bytes than were asked for";
}

TEST_F(ClientTest, OfflineNothingIsAsked) {
  Settings settings = scripted_settings("/cache");
  settings.offline = true;
  Client client = *Client::create(settings, transport_);
  const Result<HubModel> model = client.resolve(*ModelName::parse("org/name"));
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("/cache"), std::string::npos);
  EXPECT_TRUE(transport_.requests.empty());
}

TEST_F(ClientTest, SearchesByPages) {
  hub_.first.push_back(
      {"/api/models?limit=2&search=a%20b&sort=downloads",
       {.headers = {{"link", "<" + kEndpoint + "/api/models?limit=2&cursor=eyJ%3D>; rel=\"next\""}},
        .body = R"([{"id":"org/one","downloads":5,"tags":["mlx"]},{"id":"nameless"},7])"}});
  const Result<SearchPage> page = client_.search({.text = "a b", .limit = 2});
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->models.size(), 1u);
  EXPECT_EQ(page->models[0].downloads, 5);
  EXPECT_EQ(page->next, "eyJ%3D");
}

}  // namespace
}  // namespace weir::hub
