// API keys: the key file, token buckets, and what a key's limits do to its requests.
#include "api/access/keys.h"

#include <gtest/gtest.h>

#include <set>

#include "api/test_api.h"

namespace weir::api {
namespace {

TEST(KeyFile, HasAKeyALineWithAttributes) {
  const auto keys = parse_keys(
      "# who may use this\n"
      "\n"
      "sk-one\r\n"
      "  sk-two   name=alice scope=api\tconcurrency=4 requests-per-minute=60 "
      "tokens-per-minute=100000 priority=-2\n"
      "sk-three name=prometheus scope=monitor",
      "keys");
  ASSERT_TRUE(keys) << keys.error().message;
  ASSERT_EQ(keys->size(), 3u);
  EXPECT_EQ((*keys)[0].secret, "sk-one");
  EXPECT_EQ((*keys)[0].name, "line-3");
  EXPECT_EQ((*keys)[0].concurrency, 0);
  const KeySpec& alice = (*keys)[1];
  EXPECT_EQ(alice.secret, "sk-two");
  EXPECT_EQ(alice.name, "alice");
  EXPECT_EQ(text_of(alice.scopes), "api");
  EXPECT_EQ(alice.concurrency, 4);
  EXPECT_EQ(alice.requests_per_minute, 60);
  EXPECT_EQ(alice.tokens_per_minute, 100000);
  EXPECT_EQ(alice.priority, -2);
  EXPECT_EQ(text_of((*keys)[2].scopes), "monitor");
  EXPECT_TRUE(check_keys(*keys));
}

TEST(KeyFile, ErrorsNameTheLineAndNeverTheKey) {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"", "found no key"},
           {"# only this\n", "found no key"},
           {"good\nsecret concurrency=0\n", "keys line 2: concurrency: expected an integer from 1"},
           {"secret requests-per-minute=x", "keys line 1: requests-per-minute: expected"},
           {"secret tokens-per-minute=1.5", "found '1.5'"},
           {"secret scope=root",
            "scope: expected all, api, monitor or admin, or several of them "
            "with commas between, found 'root'"},
           {"secret scope=api,", "commas between, found ''"},
           {"secret scope=", "commas between, found ''"},
           {"secret scope=api,admin,Admin", "commas between, found 'Admin'"},
           {"secret name=", "name: expected 1 to 64 letters"},
           {"secret name=a\"b", "name: expected 1 to 64 letters"},
           {"secret frobs=3", "frobs: unknown; expected name, scope"},
           {"name secret", "expected attribute=value after the key"},
           {"se,cret", "printable ASCII"},
           {"s\xc3\xa9secret", "printable ASCII"},
           {std::string(513, 's') + "ecret", "1 to 512"}}) {
    const auto keys = parse_keys(text, "keys");
    ASSERT_FALSE(keys) << text;
    EXPECT_NE(keys.error().message.find(expected), std::string::npos) << keys.error().message;
    EXPECT_EQ(keys.error().message.find("secret"), std::string::npos) << keys.error().message;
  }
}

TEST(KeyFile, HoldsNoKeyAndNoNameTwice) {
  const auto refused = [](std::vector<KeySpec> keys) { return !check_keys(keys); };
  EXPECT_FALSE(refused({{"a", "x"}, {"b", "y"}}));
  EXPECT_TRUE(refused({{"a", "x"}, {"a", "y"}}));
  EXPECT_TRUE(refused({{"a", "x"}, {"b", "x"}}));
  EXPECT_TRUE(refused({{"a b", "x"}}));
  std::vector<KeySpec> many;
  for (size_t i = 0; i <= kKeysMax; ++i) many.push_back({std::to_string(i), std::to_string(i)});
  EXPECT_TRUE(refused(many));
}

TEST(TokenBuckets, FillEvenlyAndMayBeOverdrawn) {
  const Clock::time_point start{1h};
  TokenBucket bucket(60);
  EXPECT_EQ(bucket.remaining(start), 60);
  bucket.take(60, start);
  EXPECT_EQ(bucket.remaining(start), 0);
  EXPECT_DOUBLE_EQ(bucket.seconds_until(1, start), 1);
  EXPECT_DOUBLE_EQ(bucket.seconds_until_full(start), 60);
  EXPECT_EQ(bucket.remaining(start + 10s), 10);
  EXPECT_EQ(bucket.seconds_until(10, start + 10s), 0);
  bucket.take(100, start + 10s);  // 90 in debt.
  EXPECT_EQ(bucket.remaining(start + 10s), 0);
  EXPECT_DOUBLE_EQ(bucket.seconds_until(1, start + 10s), 91);
  // More than it ever holds: when it is full.
  EXPECT_DOUBLE_EQ(bucket.seconds_until(1000, start + 10s), 150);
  EXPECT_EQ(bucket.seconds_until(1000, start + 160s), 0);
  EXPECT_EQ(bucket.remaining(start + 1000s), 60);
  TokenBucket open(0);
  open.take(1000, start);
  EXPECT_EQ(open.seconds_until(1000, start), 0);
}

TEST(TokenBuckets, KeepTheShareThatIsLeftUnderANewLimit) {
  const Clock::time_point start{1h};
  TokenBucket bucket(60);
  bucket.take(45, start);
  bucket.set_limit(1000, start);
  EXPECT_EQ(bucket.remaining(start), 250);
  bucket.take(1250, start);  // In debt for a minute: it stays one.
  bucket.set_limit(10, start);
  EXPECT_DOUBLE_EQ(bucket.seconds_until_full(start), 120);
  bucket.set_limit(0, start);
  EXPECT_EQ(bucket.seconds_until(1000, start), 0);
  bucket.set_limit(60, start);
  EXPECT_EQ(bucket.remaining(start), 60);
}

std::shared_ptr<Key> find(const Keyring& ring, const std::string& secret) {
  net::HttpRequest request;
  request.headers = {{"x-api-key", secret}};
  return ring.find(request);
}

TEST(Keyrings, KeepWhatIsUsedOfTheKeysThatStay) {
  const Clock::time_point now{1h};
  const auto parse = [](std::string_view text) { return *parse_keys(text, "keys"); };
  Keyring ring(parse("one\ntwo\nthree name=alice concurrency=1\nfour name=bob"));
  const auto one = find(ring, "one"), two = find(ring, "two"), alice = find(ring, "three"),
             bob = find(ring, "four");
  EXPECT_FALSE(alice->begin(now));
  EXPECT_FALSE(bob->begin(now));
  KeyUse use(bob);

  // The first line goes, so the second is the first now: it is not the key that was there. alice
  // has another secret, and bob has gone.
  ring.replace(parse("two\nfive name=alice concurrency=1 scope=api\nsix"), now);
  EXPECT_EQ(ring.keys().size(), 3u);
  EXPECT_EQ(find(ring, "one"), nullptr);
  EXPECT_EQ(find(ring, "three"), nullptr);
  EXPECT_EQ(find(ring, "four"), nullptr);
  EXPECT_EQ(find(ring, "two"), two);
  EXPECT_EQ(two->name(), "line-1");
  EXPECT_EQ(find(ring, "five"), alice);
  EXPECT_EQ(text_of(alice->spec().scopes), "api");
  EXPECT_EQ(alice->figures().requests.value(), 1u);
  EXPECT_TRUE(alice->begin(now));  // Its one place is taken still.
  std::set<uint64_t> ids = {one->id(), two->id(), alice->id(), bob->id(), find(ring, "six")->id()};
  EXPECT_EQ(ids.size(), 5u);
  // A request in flight has its key as long as it lasts.
  EXPECT_EQ(bob->open(), 1);
  use = {};
  EXPECT_EQ(bob->open(), 0);
}

TEST(Durations, AreSpelledAsOpenAiDoes) {
  EXPECT_EQ(duration_text(0), "0ms");
  EXPECT_EQ(duration_text(0.25), "250ms");
  EXPECT_EQ(duration_text(1), "1s");
  EXPECT_EQ(duration_text(1.5), "1.5s");
  EXPECT_EQ(duration_text(20.0401), "20.041s");
  EXPECT_EQ(duration_text(360), "6m0s");
  EXPECT_EQ(duration_text(3723.5), "62m3.5s");
}

std::string bearer(const std::string& key) { return "Authorization: Bearer " + key + "\r\n"; }

TEST(Keys, LimitRequestsAMinute) {
  TestApi server(
      {.config = {.api_keys = {{.secret = "slow", .name = "slow", .requests_per_minute = 2},
                               {.secret = "free", .name = "free"}}}});
  const auto post = [&](const std::string& key) {
    return server.post("/tokenize", R"({"content":"a"})", bearer(key));
  };
  const auto first = post("slow");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.header("x-ratelimit-limit-requests"), "2");
  EXPECT_EQ(first.header("x-ratelimit-remaining-requests"), "1");
  EXPECT_TRUE(first.header("x-ratelimit-reset-requests").ends_with("s"));
  EXPECT_EQ(first.header("x-ratelimit-limit-tokens"), "");
  EXPECT_EQ(post("slow").status, 200);
  const auto refused = post("slow");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(error_code(refused.body), "rate_limit_exceeded");
  EXPECT_NE(refused.body.find("may use 2 requests a minute"), std::string::npos) << refused.body;
  const int seconds = std::stoi(std::string(refused.header("Retry-After")));
  EXPECT_GE(seconds, 25);
  EXPECT_LE(seconds, 30);
  const int ms = std::stoi(std::string(refused.header("retry-after-ms")));
  EXPECT_GT(ms, (seconds - 1) * 1000);
  EXPECT_LE(ms, seconds * 1000);
  // Looking costs nothing, and another key has limits of its own.
  EXPECT_EQ(server.get("/v1/models", bearer("slow")).status, 200);
  const auto free = post("free");
  EXPECT_EQ(free.status, 200);
  EXPECT_EQ(free.header("x-ratelimit-limit-requests"), "");
  const std::string page = server.get("/metrics", bearer("free")).body;
  EXPECT_NE(page.find("weir_key_requests_total{key=\"slow\"} 2\n"), std::string::npos) << page;
  EXPECT_NE(page.find("weir_key_refused_total{key=\"slow\"} 1\n"), std::string::npos);
}

TEST(Keys, LimitTokensOfPromptsAndAnswers) {
  TestApi server(
      {.config = {.api_keys = {{.secret = "k", .name = "k", .tokens_per_minute = 100}}}});
  const auto complete = [&](const std::string& prompt, int tokens, const char* more = "") {
    return server.post(
        "/v1/completions",
        R"({"prompt":")" + prompt + R"(","max_tokens":)" + std::to_string(tokens) + more + "}",
        bearer("k"));
  };
  const auto first = complete("ABC", 20);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.header("x-ratelimit-limit-tokens"), "100");
  EXPECT_EQ(first.header("x-ratelimit-remaining-tokens"), "77");  // Without its 3 and its own 20.
  const auto long_prompt = complete(std::string(90, 'A'), 1);
  EXPECT_EQ(long_prompt.status, 429);
  EXPECT_NE(long_prompt.body.find("This prompt has 90"), std::string::npos) << long_prompt.body;
  // An answer may overdraw; then everybody of this key waits.
  EXPECT_EQ(complete("A", 200, R"(,"stream":true)").status, 200);
  const auto in_debt = complete("A", 1);
  EXPECT_EQ(in_debt.status, 429);
  EXPECT_EQ(in_debt.header("x-ratelimit-remaining-tokens"), "0");
  EXPECT_GE(std::stoi(std::string(in_debt.header("Retry-After"))), 60);
  const std::string page = server.get("/metrics", bearer("k")).body;
  EXPECT_NE(page.find("weir_key_tokens_total{key=\"k\"} 224\n"), std::string::npos) << page;
}

TEST(Keys, PayNothingForPromptsThatTheQueueHasNoPlaceFor) {
  TestApi server({.config = {.api_keys = {{.secret = "k", .name = "k", .tokens_per_minute = 100},
                                          {.secret = "free", .name = "free"}}},
                  .queue_max = 1,
                  .step_us = 1000});
  RawClient first(server.port());
  first.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":4000})", bearer("free")));
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 1; }));
  const std::string prompt(40, 'A');
  for (const auto& [path, body] : {std::pair{"/v1/completions", R"({"prompt":")" + prompt + "\"}"},
                                   {"/v1/embeddings", R"({"input":")" + prompt + "\"}"}}) {
    for (int i = 0; i < 3; ++i) {
      const auto refused = server.post(path, body, bearer("k"));
      EXPECT_EQ(refused.status, 429);
      EXPECT_NE(refused.body.find("The queue of 1"), std::string::npos) << refused.body;
      EXPECT_EQ(refused.header("x-ratelimit-remaining-tokens"), "100");
    }
  }
}

TEST(Keys, PayNothingForPromptsThatHaveWaitedInVain) {
  TestApi server({.config = {.queue_timeout_s = 0.2,
                             .api_keys = {{.secret = "k", .name = "k", .tokens_per_minute = 100},
                                          {.secret = "free", .name = "free"}}},
                  .running_max = 1,
                  .step_us = 1000});
  RawClient first(server.port());
  first.send(net::post("/v1/completions", R"({"prompt":"A","max_tokens":4000})", bearer("free")));
  EXPECT_TRUE(server.eventually([&] { return server.engine().stats().running.value() == 1; }));
  const std::string prompt(40, 'A');
  for (const auto& [path, body] : {std::pair{"/v1/completions", R"({"prompt":")" + prompt + "\"}"},
                                   {"/v1/embeddings", R"({"input":")" + prompt + "\"}"}}) {
    const auto refused = server.post(path, body, bearer("k"));
    EXPECT_EQ(refused.status, 429);
    EXPECT_EQ(error_code(refused.body), "queue_timeout");
    EXPECT_EQ(refused.header("x-ratelimit-remaining-tokens"), "100");
  }
  // So does who leaves the queue.
  RawClient leaves(server.port());
  leaves.send(net::post("/v1/completions", R"({"prompt":")" + prompt + "\"}", bearer("k")));
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 2; }));
  leaves.close();
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 1; }));
  first.close();
  const auto served =
      server.post("/v1/completions", R"({"prompt":"A","max_tokens":2})", bearer("k"));
  EXPECT_EQ(served.status, 200);
  EXPECT_EQ(served.header("x-ratelimit-remaining-tokens"), "97");
}

TEST(Keys, LimitRequestsAtOnce) {
  TestApi server({.config = {.api_keys = {{.secret = "k", .name = "k", .concurrency = 1},
                                          {.secret = "free", .name = "free"}}},
                  .step_us = 500});
  const std::string endless = R"({"prompt":"A","max_tokens":4000})";
  RawClient first(server.port());
  first.send(net::post("/v1/completions", endless, bearer("k")));
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 1; }));
  const auto refused = server.post("/v1/completions", R"({"prompt":"A"})", bearer("k"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(server.post("/v1/completions", R"({"prompt":"A"})", bearer("free")).status, 200);
  // Who leaves makes room; so does a request that fails.
  first.close();
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 0; }));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(server.post("/v1/completions", "{}", bearer("k")).status, 400);
    EXPECT_EQ(server.post("/v1/completions", R"({"prompt":"A"})", bearer("k")).status, 200);
  }
}

TEST(Keys, LimitChoicesAtOnce) {
  TestApi server(
      {.config = {.api_keys = {{.secret = "k", .name = "k", .concurrency = 3}}}, .step_us = 500});
  const auto ask = [&](const std::string& body) {
    return server.post("/v1/completions", body, bearer("k"));
  };
  // What it may never have is refused for good.
  for (const char* body : {R"({"prompt":"A","n":4})", R"({"prompt":["A","B"],"n":2})"}) {
    const auto never = ask(body);
    EXPECT_EQ(never.status, 400);
    EXPECT_NE(never.body.find("at most 3 choices of all prompts together"), std::string::npos);
    EXPECT_NE(never.body.find("found 4"), std::string::npos) << never.body;
    EXPECT_NE(never.body.find(R"("param":"n")"), std::string::npos) << never.body;
    EXPECT_EQ(never.header("Retry-After"), "");
  }
  EXPECT_EQ(ask(R"({"prompt":"A","max_tokens":2,"n":3})").status, 200);
  RawClient first(server.port());
  first.send(
      net::post("/v1/completions", R"({"prompt":"A","max_tokens":4000,"n":2})", bearer("k")));
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 2; }));
  EXPECT_EQ(ask(R"({"prompt":"A","max_tokens":2})").status, 200);
  const auto refused = ask(R"({"prompt":"A","max_tokens":2,"n":2})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_NE(refused.body.find("this key may have 3 open"), std::string::npos) << refused.body;
  EXPECT_NE(refused.body.find("2 are open, and 2 were asked for"), std::string::npos);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  // Texts of one request are computed so many at a time, and keep no chat away.
  std::string texts = R"("A")";
  for (int i = 0; i < 20; ++i) texts += R"(,"A")";
  EXPECT_EQ(server.post("/v1/embeddings", R"({"input":[)" + texts + "]}", bearer("k")).status, 200);
  first.close();
  EXPECT_TRUE(server.eventually([&] { return server.engine().open() == 0; }));
  EXPECT_EQ(ask(R"({"prompt":"A","max_tokens":2,"n":3})").status, 200);
}

TEST(Keys, LendPlacesToLongListsWithoutKeepingOthersAway) {
  const auto key = std::make_shared<Key>(KeySpec{.secret = "k", .name = "k", .concurrency = 3}, 1);
  const Clock::time_point now{};
  ASSERT_FALSE(key->begin(now));
  {
    KeyUse list(key);
    EXPECT_TRUE(list.lend());
    EXPECT_TRUE(list.lend());
    EXPECT_FALSE(list.lend());
    ASSERT_FALSE(key->begin(now));
    KeyUse chat(key);
    list.give_back(1);
    EXPECT_FALSE(list.lend());  // The chat has the place.
    EXPECT_FALSE(chat.set_choices(2));
    EXPECT_TRUE(chat.set_choices(3));
    EXPECT_EQ(key->open(), 3);
  }
  EXPECT_EQ(key->open(), 0);
  ASSERT_FALSE(key->begin(now));
  KeyUse list(key);
  EXPECT_TRUE(list.lend() && list.lend());
}

TEST(Keys, ManageOnlyIfTheySayThatTheyMay) {
  const auto scopes_of = [](const std::string& attributes) {
    return parse_keys("secret " + attributes, "file")->front().scopes;
  };
  for (const auto& [attributes, text] : {std::pair{"", "all"},
                                         {"scope=all", "all"},
                                         {"scope=monitor,api", "all"},
                                         {"scope=admin", "admin"},
                                         {"scope=admin,api", "api,admin"},
                                         {"scope=monitor,admin", "monitor,admin"},
                                         {"scope=all,admin", "all,admin"}}) {
    const KeyScopes scopes = scopes_of(attributes);
    EXPECT_EQ(text_of(scopes), text);
    EXPECT_EQ(scopes.admin, std::string_view(text).ends_with("admin")) << attributes;
  }
  std::vector<KeySpec> plain;
  add_plain_keys(std::vector<std::string>{"secret"}, plain);
  EXPECT_FALSE(Key(plain.front(), 1).may_use(Access::kAdmin));
  const Key admin({.secret = "secret", .scopes = scopes_of("scope=admin")}, 1);
  EXPECT_TRUE(admin.may_use(Access::kAdmin) && admin.may_use(Access::kAnyKey));
  EXPECT_FALSE(admin.may_use(Access::kApi) || admin.may_use(Access::kMonitor));
}

TEST(Keys, HaveScopes) {
  TestApi server(
      {.config = {.api_keys = {{.secret = "watch", .name = "w", .scopes = {.api = false}},
                               {.secret = "ask", .name = "a", .scopes = {.monitor = false}}}}});
  EXPECT_EQ(server.get("/metrics", bearer("watch")).status, 200);
  EXPECT_EQ(server.get("/v1/models", bearer("watch")).status, 200);
  const auto refused = server.post("/v1/completions", R"({"prompt":"A"})", bearer("watch"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(error_code(refused.body), "insufficient_permissions");
  EXPECT_NE(refused.body.find("expected the scope api, found monitor"), std::string::npos)
      << refused.body;
  EXPECT_EQ(server.get("/metrics", bearer("ask")).status, 403);
  EXPECT_EQ(server.get("/v1/models", bearer("ask")).status, 200);
  EXPECT_EQ(server.post("/v1/completions", R"({"prompt":"A"})", bearer("ask")).status, 200);
}

}  // namespace
}  // namespace weir::api
