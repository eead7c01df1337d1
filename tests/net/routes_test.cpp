// Routes: which handler answers a method and a path.
#include "net/routes.h"

#include <gtest/gtest.h>

namespace weir::net {
namespace {

// A table whose handlers leave their names here.
class RoutesTest : public testing::Test {
 protected:
  void add(const std::string& method, const std::string& pattern) {
    routes.add(method, pattern,
               [this, name = method + " " + pattern](auto&&...) { called = name; });
  }

  // The handler's name and its `id`, or the status and Allow.
  std::string find(std::string_view method, std::string_view path, bool with_id = false) {
    const Routes::Match match = routes.match(method, path);
    if (match.handler == nullptr) return std::to_string(match.status) + " " + match.allow;
    (*match.handler)({}, match.params, nullptr);
    return with_id ? called + " " + match.params["id"] : called;
  }

  Routes routes;
  std::string called;
};

TEST_F(RoutesTest, FindsTheHandlerOfMethodAndPath) {
  add("GET", "/v1/models");
  add("POST", "/v1/chat/completions");
  add("GET", "/");
  EXPECT_EQ(find("GET", "/v1/models"), "GET /v1/models");
  EXPECT_EQ(find("POST", "/v1/chat/completions"), "POST /v1/chat/completions");
  EXPECT_EQ(find("GET", "/"), "GET /");
  EXPECT_EQ(find("GET", "/%76%31/models"), "GET /v1/models");
}

TEST_F(RoutesTest, NumbersHandlersInTheOrderThatTheyCame) {
  EXPECT_EQ(routes.add("GET", "/v1/models/{id}", [](auto&&...) {}), 0u);
  EXPECT_EQ(routes.add("GET", "/v1/models", [](auto&&...) {}), 1u);
  EXPECT_EQ(routes.add("DELETE", "/v1/models/{id}", [](auto&&...) {}), 2u);
  EXPECT_EQ(routes.match("GET", "/v1/models/x").number, 0u);
  EXPECT_EQ(routes.match("HEAD", "/v1/models").number, 1u);
  EXPECT_EQ(routes.match("DELETE", "/v1/models/x").number, 2u);
}

TEST_F(RoutesTest, AnUnknownPathIs404AndAWrongMethodIs405WithAllow) {
  add("GET", "/v1/models");
  add("POST", "/both");
  add("GET", "/both");
  for (const char* path :
       {"/v1", "/v1/models/", "/v1//models", "/V1/models", "//v1/models", "/v1/%zz"})
    EXPECT_EQ(find("GET", path), "404 ") << path;
  EXPECT_EQ(find("POST", "/v1/models"), "405 GET, HEAD, OPTIONS");
  EXPECT_EQ(find("DELETE", "/both"), "405 POST, GET, HEAD, OPTIONS");
}

TEST_F(RoutesTest, HeadFallsToGetAndOptionsIsAnswered) {
  add("GET", "/a");
  add("POST", "/b");
  EXPECT_EQ(find("HEAD", "/a"), "GET /a");
  EXPECT_EQ(find("HEAD", "/b"), "405 POST, OPTIONS");
  EXPECT_EQ(find("OPTIONS", "/a"), "204 GET, HEAD, OPTIONS");
  EXPECT_EQ(find("OPTIONS", "/nowhere"), "404 ");
  EXPECT_EQ(find("OPTIONS", "*"), "204 GET, HEAD, POST, OPTIONS");
  EXPECT_EQ(find("GET", "*").substr(0, 3), "404");
}

TEST_F(RoutesTest, AnEncodedAndALiteralSlashAreTheSameIdOfATrailingParameter) {
  add("GET", "/v1/models/{id}");
  EXPECT_EQ(find("GET", "/v1/models/tiny", true), "GET /v1/models/{id} tiny");
  EXPECT_EQ(find("GET", "/v1/models/org%2Fname", true), "GET /v1/models/{id} org/name");
  EXPECT_EQ(find("GET", "/v1/models/org/name", true), "GET /v1/models/{id} org/name");
  EXPECT_EQ(find("GET", "/v1/models/a%20b+c", true), "GET /v1/models/{id} a b+c");
  EXPECT_EQ(find("GET", "/v1/models/"), "404 ");
}

TEST_F(RoutesTest, BadEscapesInAParameterAre400) {
  add("GET", "/v1/models/{id}");
  for (const char* path : {"/v1/models/%", "/v1/models/%4", "/v1/models/%g0", "/v1/models/a%00"})
    EXPECT_EQ(find("GET", path), "400 ") << path;
}

TEST_F(RoutesTest, LiteralSegmentsWinOverParametersInAnyOrderOfAdding) {
  for (const bool literal_first : {false, true}) {
    routes = Routes();
    if (literal_first) add("GET", "/models/default");
    add("GET", "/models/{id}");
    add("GET", "/models/{id}/card");
    if (!literal_first) add("GET", "/models/default");
    EXPECT_EQ(find("GET", "/models/default"), "GET /models/default");
    EXPECT_EQ(find("GET", "/models/other", true), "GET /models/{id} other");
    EXPECT_EQ(find("GET", "/models/x/card", true), "GET /models/{id}/card x");
    EXPECT_EQ(find("GET", "/models/x/y/card", true), "GET /models/{id} x/y/card");
  }
}

TEST_F(RoutesTest, APathOfManySlashesIsJustUnknown) {
  add("GET", "/v1/models");
  EXPECT_EQ(find("GET", std::string(60'000, '/')), "404 ");
}

}  // namespace
}  // namespace weir::net
