#include "api/cors.h"

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
  EXPECT_TRUE(headers_of(CorsPolicy({"*"}), from("")).empty());
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
  EXPECT_EQ(headers["Access-Control-Allow-Origin"], "*");

  const auto foreign = CorsPolicy({"https://b.example"}).preflight(request);
  ASSERT_TRUE(foreign);
  for (const auto& [name, value] : *foreign) EXPECT_EQ(name, "Vary") << value;
}

}  // namespace
}  // namespace weir::api
