#include "api/access/cors.h"

#include <gtest/gtest.h>

#include <map>

namespace weir::api {
namespace {

net::HttpRequest from(std::string origin, std::string method = "GET") {
  net::HttpRequest request;
  request.method = std::move(method);
  if (!origin.empty()) request.headers = {{"origin", std::move(origin)}};
  return request;
}

std::map<std::string, std::string> headers_of(const CorsPolicy& policy,
                                              const net::HttpRequest& request) {
  net::HttpResponder::Headers headers;
  policy.add_headers(request, headers);
  return {headers.begin(), headers.end()};
}

TEST(CorsPolicy, SaysNothingUnlessConfigured) {
  EXPECT_TRUE(headers_of(CorsPolicy({}), from("https://a.example")).empty());
}

TEST(CorsPolicy, AllowsAnyOriginWithoutCredentials) {
  auto headers = headers_of(CorsPolicy({"*"}), from("https://a.example"));
  EXPECT_EQ(headers["Access-Control-Allow-Origin"], "*");
  EXPECT_FALSE(headers.contains("Access-Control-Allow-Credentials"));
  // No page asks; but what is cached of this answer is not for one that does.
  EXPECT_EQ(headers_of(CorsPolicy({"*"}), from("")),
            (std::map<std::string, std::string>{{"Vary", "Origin"}}));
}

TEST(CorsPolicy, AllowsNamedOriginsOnlyAndWithCredentials) {
  const CorsPolicy policy({"https://a.example", "https://b.example"});
  auto headers = headers_of(policy, from("https://b.example"));
  EXPECT_EQ(headers["Access-Control-Allow-Origin"], "https://b.example");
  EXPECT_EQ(headers["Access-Control-Allow-Credentials"], "true");
  EXPECT_EQ(headers["Vary"], "Origin");
  for (const char* origin : {"https://c.example", "http://a.example", "https://a.example.evil"}) {
    headers = headers_of(policy, from(origin));
    EXPECT_FALSE(headers.contains("Access-Control-Allow-Origin")) << origin;
    EXPECT_EQ(headers["Vary"], "Origin");
  }
}

TEST(CorsPolicy, KnowsOriginsAsBrowsersSpellThem) {
  for (const char* origin :
       {"https://a.example", "http://localhost:3000", "http://127.0.0.1:80800", "http://[::1]:8080",
        "chrome-extension://abcdef", "https://a.example:80"})
    EXPECT_TRUE(is_origin(origin)) << origin;
  for (const char* origin : {"", "a.example", "null", "https://", "://a", "https://a.example/",
                             "https://A.example", "https://a.example:443", "http://a.example:80",
                             "https://user@a.example", "https://*.a.example", "https://a.example:"})
    EXPECT_FALSE(is_origin(origin)) << origin;
}

TEST(CorsPolicy, EchoesTheHeadersThatAPreflightAsksFor) {
  const CorsPolicy policy({"*"});
  net::HttpRequest request = from("https://a.example", "OPTIONS");
  EXPECT_FALSE(policy.preflight(request));  // Plain OPTIONS.
  request.headers.emplace_back("access-control-request-method", "POST");
  request.headers.emplace_back("access-control-request-headers", "authorization,x-stainless-os");
  const auto answer = policy.preflight(request);
  ASSERT_TRUE(answer);
  std::map<std::string, std::string> headers(answer->begin(), answer->end());
  EXPECT_EQ(headers["Access-Control-Allow-Headers"], "authorization,x-stainless-os");
  EXPECT_NE(headers["Access-Control-Allow-Methods"].find("POST"), std::string::npos);
  // Every answer has these; twice would be once too often.
  for (const auto& [name, value] : headers_of(policy, request))
    EXPECT_FALSE(headers.contains(name));

  const auto foreign = CorsPolicy({"https://b.example"}).preflight(request);
  ASSERT_TRUE(foreign);
  EXPECT_TRUE(foreign->empty());
}

}  // namespace
}  // namespace weir::api
