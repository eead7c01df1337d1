#include "api/access/guard.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace weir::api {
namespace {

net::HttpRequest request_of(std::string method, net::HttpResponder::Headers headers) {
  net::HttpRequest request;
  request.method = std::move(method);
  request.path = "/v1/chat/completions";
  request.headers = std::move(headers);
  request.peer_id = 0x7f000001;
  return request;
}

net::HttpRequest get_as(std::string host) { return request_of("GET", {{"host", std::move(host)}}); }

// As a browser sends it for a page of `origin`.
net::HttpRequest post_of(const std::string& host, const std::string& origin,
                         const std::string& site = {}) {
  net::HttpRequest request = request_of("POST", {{"host", host}});
  if (!origin.empty()) request.headers.emplace_back("origin", origin);
  if (!site.empty()) request.headers.emplace_back("sec-fetch-site", site);
  return request;
}

Guard guard_of(std::vector<std::string> hosts = {}, std::vector<std::string> origins = {},
               bool tls = false) {
  return Guard({.allowed_hosts = std::move(hosts),
                .own_names = {"0.0.0.0", "Box.home.example", "box", "box.local"},
                .tls = tls},
               CorsPolicy(std::move(origins)));
}

bool passes(const Guard& guard, const net::HttpRequest& request) {
  return !guard.refusal(request, false);
}

TEST(Guard, KnowsItsOwnNamesAndAddressesInAllSpellings) {
  const Guard guard = guard_of();
  for (const char* host :
       {"127.0.0.1", "127.0.0.1:5413", "0.0.0.0:5413", "192.168.1.7:80", "[::1]:5413", "[::1]",
        "[2001:db8::7]:5413", "localhost", "LOCALHOST:5413", "localhost.:5413", "weir.localhost",
        "a.b.localhost:1", "box:5413", "BOX", "box.local", "box.home.example:5413",
        "host.docker.internal:5413", "host.containers.internal", ""})
    EXPECT_TRUE(passes(guard, get_as(host))) << host;
  EXPECT_TRUE(passes(guard, request_of("GET", {}))) << "HTTP/1.0";
}

TEST(Guard, RefusesNamesThatAPageMayHaveMadeToLeadHere) {
  const Guard guard = guard_of();
  for (const char* host : {"evil.example",
                           "evil.example:5413",
                           "localhost.evil.example",
                           "evil-localhost",
                           "127.0.0.1.evil.example",
                           "127.0.0.1.5",
                           "127.1",
                           "0x7f000001",
                           "2130706433",
                           "weir:5413",
                           "box.evil.example",
                           "box.local.evil.example",
                           "::1",
                           "[::1",
                           "[::1].evil.example",
                           "[evil]",
                           "[127.0.0.1]",
                           "localhost:5413:1",
                           "localhost:x",
                           "user@localhost",
                           "localhost/x",
                           "internal",
                           "evil.internal",
                           "xhost.docker.internal",
                           " ",
                           ".",
                           "..",
                           "127.0.0.1,evil"})
    for (const char* method : {"GET", "HEAD", "POST", "OPTIONS", "DELETE"})
      EXPECT_FALSE(passes(guard, request_of(method, {{"host", host}}))) << method << " " << host;
}

TEST(Guard, KnowsTheNamesThatAreAllowed) {
  const Guard guard = guard_of({"weir", "LLM.example", "*.svc.cluster.local"});
  for (const char* host : {"weir:5413", "Weir", "llm.example", "llm.EXAMPLE.:80",
                           "weir.default.svc.cluster.local", "localhost"})
    EXPECT_TRUE(passes(guard, get_as(host))) << host;
  for (const char* host :
       {"weir.example", "a.llm.example", "svc.cluster.local", "evilsvc.cluster.local", "*"})
    EXPECT_FALSE(passes(guard, get_as(host))) << host;
  EXPECT_TRUE(passes(guard_of({"*"}), get_as("evil.example")));
}

TEST(Guard, SaysWhatToAdd) {
  const Guard guard = guard_of();
  const std::string host = *guard.refusal(get_as("weir:5413"), false);
  EXPECT_NE(host.find("'weir:5413'"), std::string::npos) << host;
  EXPECT_NE(host.find("--allowed-hosts weir (WEIR_ALLOWED_HOSTS=weir)"), std::string::npos) << host;
  EXPECT_LT(guard.refusal(get_as(std::string(5'000, 'a')), false)->size(), 1'000u);
  const std::string odd = *guard.refusal(get_as("a b;rm"), false);
  EXPECT_NE(odd.find("--allowed-hosts NAME "), std::string::npos) << odd;

  const std::string page =
      *guard.refusal(post_of("127.0.0.1:5413", "https://chat.example", "cross-site"), false);
  EXPECT_NE(page.find("--cors https://chat.example (WEIR_CORS=https://chat.example)"),
            std::string::npos)
      << page;
  const std::string file = *guard.refusal(post_of("127.0.0.1", "null"), false);
  EXPECT_NE(file.find("--cors '*'"), std::string::npos) << file;
}

TEST(Guard, LeavesRequestsToTheKeysWhereThereAreSome) {
  const Guard guard = guard_of();
  EXPECT_FALSE(guard.refusal(get_as("evil.example"), true));
  EXPECT_FALSE(guard.refusal(post_of("evil.example", "https://evil.example", "cross-site"), true));
}

TEST(Guard, AsksNoNameOfUnixSocketsAndOfTls) {
  net::HttpRequest request = get_as("whatever");
  request.peer_id = net::kUnixPeer;
  EXPECT_TRUE(passes(guard_of(), request));
  EXPECT_TRUE(passes(guard_of({}, {}, true), get_as("llm.example")));
  EXPECT_FALSE(passes(guard_of({}, {}, true), post_of("llm.example", "https://evil.example")));
}

struct Case {
  const char *host, *origin, *site;
};

TEST(Guard, LetsProgramsAndItsOwnPagesPost) {
  const Guard guard = guard_of({"chat.example"});
  for (const Case& c : {Case{"127.0.0.1:5413", "", ""},
                        {"", "", ""},
                        {"127.0.0.1:5413", "http://127.0.0.1:5413", ""},
                        {"127.0.0.1:5413", "http://127.0.0.1:5413", "same-origin"},
                        {"LocalHost:5413", "http://localhost:5413", "same-origin"},
                        {"[::1]:5413", "http://[::1]:5413", ""},
                        {"chat.example", "https://chat.example", ""},
                        {"chat.example:443", "https://chat.example", ""},
                        {"chat.example:80", "http://chat.example", ""},
                        // A proxy has put its own name there; or the page says no referrer.
                        {"127.0.0.1:5413", "https://chat.example", "same-origin"},
                        {"127.0.0.1:5413", "null", "same-origin"},
                        {"127.0.0.1:5413", "", "none"}})
    EXPECT_TRUE(passes(guard, post_of(c.host, c.origin, c.site)))
        << c.host << " " << c.origin << " " << c.site;
}

TEST(Guard, RefusesToComputeForOtherSitesPages) {
  const Guard guard = guard_of({"chat.example"});
  for (const Case& c : {Case{"127.0.0.1:5413", "https://evil.example", "cross-site"},
                        {"127.0.0.1:5413", "https://evil.example", ""},
                        {"127.0.0.1:5413", "null", "cross-site"},
                        {"127.0.0.1:5413", "null", ""},
                        {"127.0.0.1:5413", "", "cross-site"},
                        {"127.0.0.1:5413", "", "same-site"},
                        {"localhost:5413", "http://localhost:3000", "same-site"},
                        {"localhost:5413", "http://localhost", ""},
                        {"chat.example", "http://chat.example:8080", ""},
                        {"chat.example", "https://chat.example", "cross-site"},
                        {"127.0.0.1:5413", "http://127.0.0.1:5413.evil.example", ""},
                        {"127.0.0.1:5413", "chrome-extension://127.0.0.1:5413", "none"},
                        {"127.0.0.1:5413", "vscode-webview://abc", "cross-site"},
                        {"", "http://", ""}}) {
    EXPECT_FALSE(passes(guard, post_of(c.host, c.origin, c.site)))
        << c.host << " " << c.origin << " " << c.site;
    for (const char* method : {"DELETE", "PUT", "PATCH"}) {
      net::HttpRequest request = post_of(c.host, c.origin, c.site);
      request.method = method;
      EXPECT_FALSE(passes(guard, request)) << method;
    }
    // What looks on is computed for nobody, and the page cannot read it.
    for (const char* method : {"GET", "HEAD", "OPTIONS"}) {
      net::HttpRequest request = post_of(c.host, c.origin, c.site);
      request.method = method;
      EXPECT_TRUE(passes(guard, request)) << method;
    }
  }
}

TEST(Guard, LetsPagesPassThatCorsLets) {
  const Guard named = guard_of({}, {"https://a.example", "vscode-webview://abc"});
  EXPECT_TRUE(passes(named, post_of("127.0.0.1", "https://a.example", "cross-site")));
  EXPECT_TRUE(passes(named, post_of("127.0.0.1", "vscode-webview://abc", "cross-site")));
  EXPECT_FALSE(passes(named, post_of("127.0.0.1", "https://b.example", "cross-site")));
  EXPECT_FALSE(passes(named, post_of("evil.example", "https://a.example", "cross-site")));
  const Guard any = guard_of({}, {"*"});
  for (const char* origin : {"https://b.example", "null"})
    EXPECT_TRUE(passes(any, post_of("weir:5413", origin, "cross-site")))
        << "whoever lets all pages in has nothing to keep names from";
}

TEST(Guard, NamesOfThisMachineAreItsOwn) {
  const Guard guard({.own_names = own_names("llm.example")}, CorsPolicy({}));
  char name[256] = {};
  ASSERT_EQ(::gethostname(name, sizeof name - 1), 0);
  EXPECT_TRUE(passes(guard, get_as(std::string(name) + ":5413"))) << name;
  EXPECT_TRUE(passes(guard, get_as("llm.example")));
}

TEST(Guard, KnowsPatternsOfHosts) {
  for (const char* text : {"*", "weir", "a.b", "*.a.b", "A_b-c.9"})
    EXPECT_TRUE(is_host_pattern(text)) << text;
  for (const char* text : {"", ".", ".a", "*.", "*a", "a:1", "[::1]", "http://a", "a/b", "a,b"})
    EXPECT_FALSE(is_host_pattern(text)) << text;
}

}  // namespace
}  // namespace weir::api
