// What a request asked for and did not get: the header, the counter, and every endpoint that has
// it.
#include "api/request/ignored.h"

#include <gtest/gtest.h>

#include "api/test_api.h"

namespace weir::api {
namespace {

Ignored unknown_of(const std::string& body) {
  static const std::vector<FieldDoc> kKnown = {{"temperature", "number", ""},
                                               {"max_tokens", "integer", ""}};
  const auto doc = JsonDoc::parse(body);
  EXPECT_TRUE(doc) << body;
  Ignored ignored;
  ignored.add_unknown(doc->root().get_object().value_unsafe(), kKnown);
  return ignored;
}

TEST(Ignored, NamesUnknownFieldsAndWhatWasMeant) {
  EXPECT_EQ(unknown_of(R"({"temprature":1,"max_tokens":5,"colour":"red"})").header(),
            "temprature (temperature?), colour");
  EXPECT_EQ(unknown_of(R"({"maxTokens":5})").header(), "maxTokens (max_tokens?)");
}

TEST(Ignored, TakesNullForNothing) {
  EXPECT_TRUE(unknown_of(R"({"colour":null,"temperature":1})").empty());
}

TEST(Ignored, IsFitForAHeaderWhateverAClientSends) {
  const std::string header = unknown_of(R"({"a\r\nSet-Cookie: x":1,"\u00e9":2,"":3})").header();
  for (const char c : header) EXPECT_TRUE(c >= ' ' && c <= '~') << header;
}

TEST(Ignored, CountsWhatItDoesNotName) {
  std::string body = "{";
  for (int i = 0; i < 1000; ++i)
    body += (i ? ",\"" : "\"") + std::string(500, 'x') + std::to_string(i) + "\":1";
  const Ignored long_names = unknown_of(body + "}");
  EXPECT_EQ(long_names.names().size(), 1u) << "they differ only where they are cut";
  body = "{";
  for (int i = 0; i < 1000; ++i) body += (i ? ",\"x" : "\"x") + std::to_string(i) + "\":1";
  const Ignored many = unknown_of(body + "}");
  EXPECT_EQ(many.count(), 1000);
  EXPECT_TRUE(many.header().ends_with(", and 984 more")) << many.header();
  EXPECT_LT(many.header().size(), 3000u);
}

// Each comparison with a table of names costs a few hundred microseconds of a pool thread.
TEST(Ignored, ComparesOnlyTheFirstUnknownNames) {
  std::string body = "{";
  for (int i = 0; i < 20; ++i) body += (i ? ",\"q" : "\"q") + std::to_string(i % 2) + "\":1";
  const Ignored repeated = unknown_of(body + R"(,"temprature":1})");
  EXPECT_EQ(repeated.header(), "q0, q1, temprature");
}

TEST(Ignored, IsToldByEveryAnswer) {
  TestApi server;
  const struct {
    const char *path, *body;
  } requests[] = {
      {"/v1/chat/completions", R"("messages":[{"role":"user","content":"Hi"}])"},
      {"/v1/chat/completions", R"("messages":[{"role":"user","content":"Hi"}],"stream":true)"},
      {"/v1/completions", R"("prompt":"A","max_tokens":2)"},
      {"/v1/responses", R"("input":"Hi")"},
      {"/v1/messages", R"("messages":[{"role":"user","content":"Hi"}],"max_tokens":4)"},
      {"/v1/embeddings", R"("input":"Hi")"},
  };
  for (const auto& [path, body] : requests) {
    const auto answer =
        server.post(path, "{\"model\":\"m\"," + std::string(body) + R"(,"temprature":1})");
    EXPECT_EQ(answer.status, 200) << path << answer.body;
    EXPECT_EQ(answer.header("x-weir-ignored").substr(0, 10), "temprature") << path;
    const auto quiet = server.post(path, "{\"model\":\"m\"," + std::string(body) + "}");
    EXPECT_EQ(quiet.status, 200) << path << quiet.body;
    EXPECT_EQ(quiet.header("x-weir-ignored"), "") << path;
  }
  EXPECT_NE(server.get("/metrics").body.find("\nweir_ignored_parts_total 6\n"), std::string::npos);
}

}  // namespace
}  // namespace weir::api
