// Every endpoint, and such as will come, against names, pages, types of bodies and keys: what
// passes the guard and the entrance is what a table of five lines says.
#include "api/access/entrance.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/access/guard.h"
#include "api/api.h"

namespace weir::api {
namespace {

struct Host {
  const char* name;
  bool own;
};
constexpr Host kHosts[] = {
    {"127.0.0.1:5413", true}, {"[::1]:5413", true},    {"localhost", true},
    {"box.local:80", true},   {"evil.example", false}, {"127.0.0.1.evil.example:5413", false},
    {"0x7f000001", false},    {"127.1", false},
};

constexpr const char* kItself = "itself";  // The origin that Host says.
constexpr const char* kAllowedOrigin = "https://chat.example";
struct Page {
  const char *origin, *site;
  bool foreign;
};
constexpr Page kPages[] = {
    {"", "", false},
    {kItself, "same-origin", false},
    {kItself, "", false},
    {"", "none", false},
    {kAllowedOrigin, "cross-site", false},
    {"https://evil.example:8443", "cross-site", true},
    {"https://evil.example:8443", "", true},
    {"null", "cross-site", true},
    {"null", "", true},
    {"", "cross-site", true},
    {"", "same-site", true},
    {"http://127.0.0.1:3000", "same-site", true},
};

struct Type {
  const char* text;
  bool json;
};
constexpr Type kTypes[] = {
    {"application/json", true},
    {"application/json; charset=utf-8", true},
    {"Application/JSON", true},
    {"", false},
    {"text/plain", false},
    {"text/plain; application/json", false},
    {"application/x-www-form-urlencoded", false},
    {"multipart/form-data; boundary=x", false},
    {"application/jsonx", false},
    {"application/ld+json", false},
};

struct Caller {
  bool keys = true;    // The server has some.
  bool known = true;   // This one is of them.
  KeyScopes scopes{};  // Of this one.
};
constexpr Caller kCallers[] = {
    {.keys = false, .known = false},
    {.known = false},
    {.scopes = {.monitor = false}},
    {.scopes = {.api = false}},
    {},
    {.scopes = {.api = false, .monitor = false, .admin = true}},
    {.scopes = {.monitor = false, .admin = true}},
    {.scopes = {.api = false, .admin = true}},
    {.scopes = {.admin = true}},
    {.scopes = {.api = false, .monitor = false}},
};
static_assert(std::size(kHosts) + std::size(kPages) + std::size(kTypes) + std::size(kCallers) ==
              40);

struct Endpoint {
  std::string method, path;
  Access access;
};

// Those that there are, and in any case some of management, below /x.
std::vector<Endpoint> endpoints() {
  std::vector<Endpoint> all = {{"POST", "/x/load", Access::kAdmin},
                               {"DELETE", "/x", Access::kAdmin},
                               {"GET", "/x/search", Access::kAdmin},
                               {"HEAD", "/x/search", Access::kAdmin}};
  for (const EndpointDoc& doc : Api::endpoints())
    all.push_back({std::string(doc.method), std::string(doc.path), doc.access});
  return all;
}

net::HttpRequest request_of(const Endpoint& endpoint, const Host& host, const Page& page,
                            const Type& type) {
  net::HttpRequest request;
  request.method = endpoint.method;
  request.path = endpoint.path;
  request.peer_id = 0x7f000001;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) request.headers.emplace_back(name, value);
  };
  add("host", host.name);
  add("origin", page.origin == kItself ? "http://" + std::string(host.name) : page.origin);
  add("sec-fetch-site", page.site);
  add("content-type", type.text);
  if (endpoint.method == "POST") add("content-length", "2");
  return request;
}

bool in_scope(const Caller& caller, Access access) {
  return access == Access::kOpen || !caller.keys ||
         (caller.known &&
          (access == Access::kAnyKey || (access == Access::kApi && caller.scopes.api) ||
           (access == Access::kMonitor && caller.scopes.monitor) ||
           (access == Access::kAdmin && caller.scopes.admin)));
}

// Without keys: names of this server only, and no other site's page where something is computed. To
// manage: no other site's page at all, and a POST that says JSON.
bool may_pass(const Endpoint& endpoint, const Host& host, const Page& page, const Type& type,
              const Caller& caller) {
  const bool looks = endpoint.method == "GET" || endpoint.method == "HEAD";
  const bool manages = endpoint.access == Access::kAdmin;
  return in_scope(caller, endpoint.access) && (caller.keys || host.own) &&
         !(page.foreign && (manages || (!caller.keys && !looks))) &&
         !(manages && endpoint.method == "POST" && !type.json);
}

TEST(Entrance, LetsInWhomTheTableSaysAndNobodyElse) {
  const CorsPolicy cors({kAllowedOrigin});
  const Guard guard({.own_names = {"box.local"}}, cors);
  const Entrance entrance({}, cors);
  std::vector<std::unique_ptr<Key>> keys;
  for (const Caller& caller : kCallers)
    keys.push_back(std::make_unique<Key>(KeySpec{.secret = "s", .scopes = caller.scopes}, 1));
  int64_t wrong = 0, let_in = 0;
  for (const Endpoint& endpoint : endpoints())
    for (const Host& host : kHosts)
      for (const Page& page : kPages)
        for (const Type& type : kTypes) {
          const net::HttpRequest request = request_of(endpoint, host, page, type);
          for (size_t i = 0; i < keys.size(); ++i) {
            const Caller& caller = kCallers[i];
            const bool passes =
                !guard.refusal(request, caller.keys) &&
                !entrance.refusal(request, endpoint.access, caller.known ? keys[i].get() : nullptr,
                                  caller.keys);
            if (endpoint.path.starts_with("/x")) let_in += passes;
            if (passes == may_pass(endpoint, host, page, type, caller) || ++wrong > 20) continue;
            ADD_FAILURE() << endpoint.method << " " << endpoint.path << " of " << host.name
                          << ", page '" << page.origin << "' '" << page.site << "', type '"
                          << type.text << "', caller " << i << (passes ? " passes" : " does not");
          }
        }
  EXPECT_EQ(wrong, 0);
  // Without keys 4 names, with one of 4 keys 8: 36, of 5 pages. POST has 3 types, the others 10.
  EXPECT_EQ(let_in, 36 * 5 * (3 + 3 * 10));
}

// POST and DELETE of scope api, and what they leave behind. Whatever is not here must be of scope
// admin: a row of the endpoint table that changes the server for others does not pass this test.
const std::map<std::string, std::string> kForTheCallerAlone = {
    {"POST /v1/chat/completions", "nothing"},
    {"POST /v1/completions", "nothing"},
    {"POST /completion", "nothing"},
    {"POST /completions", "nothing"},
    {"POST /infill", "nothing"},
    {"POST /v1/responses", "a response that its caller alone can read"},
    {"POST /v1/responses/input_tokens", "nothing"},
    {"POST /v1/responses/{id}/cancel", "nothing"},
    {"DELETE /v1/responses/{id}", "one response less, of its caller's"},
    {"POST /v1/messages", "nothing"},
    {"POST /v1/messages/count_tokens", "nothing"},
    {"POST /v1/embeddings", "nothing"},
    {"POST /v1/rerank", "nothing"},
    {"POST /v2/rerank", "nothing"},
    {"POST /v1/score", "nothing"},
    {"POST /v1/audio/transcriptions", "nothing"},
    {"POST /v1/audio/translations", "nothing"},
    {"POST /v1/audio/speech", "nothing; it answers 404"},
    {"POST /api/chat", "nothing; unloading is refused as management is"},
    {"POST /api/generate", "nothing; unloading is refused as management is"},
    {"POST /api/embed", "nothing"},
    {"POST /api/embeddings", "nothing"},
    {"POST /api/show", "nothing"},
    {"POST /tokenize", "nothing"},
    {"POST /apply-template", "nothing"},
    {"POST /detokenize", "nothing"},
};

TEST(Entrance, WhateverChangesTheServerIsOfScopeAdmin) {
  size_t found = 0;
  for (const EndpointDoc& endpoint : Api::endpoints()) {
    if (endpoint.method == "GET" || endpoint.access == Access::kAdmin) continue;
    const std::string name = std::string(endpoint.method) + " " + std::string(endpoint.path);
    EXPECT_EQ(endpoint.access, Access::kApi) << name;
    EXPECT_TRUE(kForTheCallerAlone.contains(name))
        << name
        << " may change something: make it Access::kAdmin, or say in kForTheCallerAlone why "
        << "nobody but its caller will see what it leaves behind";
    ++found;
  }
  EXPECT_EQ(found, kForTheCallerAlone.size()) << "kForTheCallerAlone names what is gone";
}

const Endpoint kLoad{"POST", "/x/load", Access::kAdmin};

// How a server without keys refuses to be managed; empty: it does not.
std::string refusal_of(EntranceConfig config, const net::HttpRequest& request,
                       std::vector<std::string> origins = {}) {
  const auto refusal = Entrance(config, CorsPolicy(std::move(origins)))
                           .refusal(request, Access::kAdmin, nullptr, false);
  if (!refusal) return {};
  EXPECT_TRUE(refusal->error.code == ErrorCode::kForbidden ||
              refusal->error.code == ErrorCode::kMediaType);
  return refusal->error.message;
}

void expect_says(const std::string& message, std::string_view part) {
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(Entrance, WithoutKeysOnlyThisMachineManages) {
  const net::HttpRequest request = request_of(kLoad, kHosts[0], kPages[0], kTypes[0]);
  EXPECT_EQ(refusal_of({}, request), "");
  expect_says(refusal_of({.is_public = true}, request), "other machines reach it (--host)");
  expect_says(refusal_of({.any_host = true}, request), "--allowed-hosts '*'");
  expect_says(refusal_of({}, request, {"*"}), "--cors '*'");
  EXPECT_EQ(refusal_of({}, request, {kAllowedOrigin}), "");
  for (const char* name : {"x-forwarded-for", "forwarded", "via"}) {
    net::HttpRequest forwarded = request;
    forwarded.headers.emplace_back(name, "192.0.2.1");
    expect_says(refusal_of({}, forwarded), "a proxy passes requests on to it");
    EXPECT_EQ(refusal_of({.manage = Manage::kOn}, forwarded), "");
  }
  EXPECT_EQ(refusal_of({.manage = Manage::kOn, .is_public = true, .any_host = true}, request), "");
  expect_says(refusal_of({.is_public = true}, request),
              "of which those that manage have the scope admin (--api-key-file), or with --manage "
              "on (WEIR_MANAGE=on)");
}

TEST(Entrance, OffIsOffForKeysToo) {
  const net::HttpRequest request = request_of(kLoad, kHosts[0], kPages[0], kTypes[0]);
  const Key key({.secret = "s", .scopes = {.admin = true}}, 1);
  for (const Manage manage : {Manage::kAuto, Manage::kOn, Manage::kOff}) {
    const Entrance entrance({.manage = manage, .is_public = true, .any_host = true},
                            CorsPolicy({"*"}));
    EXPECT_EQ(entrance.refusal(request, Access::kAdmin, &key, true).has_value(),
              manage == Manage::kOff);
    EXPECT_FALSE(entrance.refusal(request, Access::kApi, &key, true));
  }
  expect_says(refusal_of({.manage = Manage::kOff}, request), "--manage off");
}

TEST(Entrance, SaysWhatIsMissing) {
  const Entrance entrance({}, CorsPolicy({}));
  const net::HttpRequest request = request_of(kLoad, kHosts[0], kPages[0], kTypes[0]);
  const auto unknown = entrance.refusal(request, Access::kAdmin, nullptr, true);
  EXPECT_EQ(unknown->error.code, ErrorCode::kUnauthorized);
  EXPECT_EQ(unknown->headers.front().first, "WWW-Authenticate");
  const Key key({.secret = "s"}, 1);
  const auto narrow = entrance.refusal(request, Access::kAdmin, &key, true);
  EXPECT_EQ(narrow->error.message,
            "This key may not use /x/load: expected the scope admin, found all.");
  EXPECT_EQ(narrow->error.kind, "insufficient_permissions");

  const Page attack{"https://evil.example", "cross-site", true};
  expect_says(refusal_of({}, request_of(kLoad, kHosts[0], attack, kTypes[0])),
              "may not manage this server: found Origin 'https://evil.example'. Start the server "
              "with --cors https://evil.example");
  EXPECT_EQ(refusal_of({}, request_of(kLoad, kHosts[0], kPages[0], {"text/plain", false})),
            "Unsupported content type: expected application/json, found text/plain.");
  EXPECT_EQ(refusal_of({}, request_of(kLoad, kHosts[0], kPages[0], {"", false})),
            "Unsupported content type: expected application/json, found none.");
}

TEST(Entrance, ABodyOfDeleteSaysJsonToo) {
  const Endpoint endpoint{"DELETE", "/x", Access::kAdmin};
  net::HttpRequest request = request_of(endpoint, kHosts[0], kPages[0], {"", false});
  EXPECT_EQ(refusal_of({}, request), "");
  request.headers.emplace_back("content-length", "0");
  EXPECT_EQ(refusal_of({}, request), "");
  for (const auto& [name, value] :
       {std::pair{"content-length", "2"}, {"transfer-encoding", "chunked"}}) {
    request = request_of(endpoint, kHosts[0], kPages[0], {"", false});
    request.headers.emplace_back(name, value);
    expect_says(refusal_of({}, request), "found none");
    request = request_of(endpoint, kHosts[0], kPages[0], kTypes[0]);
    request.headers.emplace_back(name, value);
    EXPECT_EQ(refusal_of({}, request), "");
  }
}

}  // namespace
}  // namespace weir::api
