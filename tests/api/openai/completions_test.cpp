// What only text completions have: echo with the prompt's log-probabilities, best_of, suffix.
#include <gtest/gtest.h>

#include "api/request/fim.h"
#include "api/test_api.h"

namespace weir::api::openai {
namespace {

// Choice `index` of an answer.
class Choice {
 public:
  explicit Choice(const std::string& body, size_t index = 0) : doc_(*JsonDoc::parse(body)) {
    choice_ = doc_.root()["choices"].at(index).value();
  }
  std::string text() const { return std::string(std::string_view(choice_["text"])); }
  std::string finish() const { return std::string(std::string_view(choice_["finish_reason"])); }
  std::string tokens() const {
    std::string all;
    for (const std::string_view token : choice_["logprobs"]["tokens"].get_array())
      all.append(all.empty() ? "" : " ").append(token);
    return all;
  }
  // Log-probabilities; 1 stands for null.
  std::vector<double> logprobs() const {
    std::vector<double> all;
    for (const JsonValue value : choice_["logprobs"]["token_logprobs"].get_array())
      all.push_back(value.is_null() ? 1 : double(value));
    return all;
  }
  std::vector<int64_t> offsets() const {
    std::vector<int64_t> all;
    for (const int64_t offset : choice_["logprobs"]["text_offset"].get_array())
      all.push_back(offset);
    return all;
  }
  JsonValue top(size_t token) const {
    return choice_["logprobs"]["top_logprobs"].at(token).value();
  }

 private:
  JsonDoc doc_;
  JsonValue choice_;
};

std::string complete(const TestApi& server, const std::string& fields) {
  const auto answer = server.post("/v1/completions", R"({"temperature":0,)" + fields + "}");
  EXPECT_EQ(answer.status, 200) << answer.body;
  return answer.body;
}

TEST(Echo, PutsThePromptBeforeTheAnswer) {
  TestApi server;
  const auto text = [&](const std::string& fields) {
    return Choice(complete(server, R"("echo":true,)" + fields)).text();
  };
  EXPECT_EQ(text(R"("prompt":"xyzA","max_tokens":3)"), "xyzABCD");
  EXPECT_EQ(text(R"("prompt":[120,65],"max_tokens":2)"), "xABC");
  EXPECT_EQ(text(R"("prompt":"a<mark>A","max_tokens":1)"), "a<mark>AB");
  EXPECT_EQ(text("\"prompt\":\"\xc3\xa9"
                 R"(A","max_tokens":1,"logprobs":0)"),
            "\xc3\xa9"
            "AB");
  EXPECT_EQ(text(R"("prompt":"xA","max_tokens":9,"stop":"D")"), "xABC");
  EXPECT_EQ(text(R"("prompt":" A","max_tokens":1)"), " AB");
}

TEST(Echo, OfSeveralPromptsAndChoicesIsEachOnesOwn) {
  TestApi server;
  const std::string body =
      complete(server, R"("prompt":["xA","yK"],"n":2,"max_tokens":1,"echo":true,"logprobs":1)");
  for (const auto& [index, text] : {std::pair{0u, "xAB"}, {1u, "xAB"}, {2u, "yKL"}, {3u, "yKL"}}) {
    EXPECT_EQ(Choice(body, index).text(), text);
    EXPECT_EQ(Choice(body, index).logprobs().size(), 3u);
  }
}

TEST(Echo, ScoresThePrompt) {
  TestApi server;
  const std::string body =
      complete(server, R"("prompt":"ABXY","max_tokens":1,"echo":true,"logprobs":2)");
  const Choice choice(body);
  EXPECT_EQ(choice.text(), "ABXYZ");
  EXPECT_EQ(choice.tokens(), "A B X Y Z");
  EXPECT_EQ(choice.offsets(), (std::vector<int64_t>{0, 1, 2, 3, 4}));
  const std::vector<double> logprobs = choice.logprobs();
  ASSERT_EQ(logprobs.size(), 5u);
  EXPECT_EQ(logprobs[0], 1);  // Null: nothing precedes it.
  // 260 tokens have logit 0, the right one 30.
  EXPECT_NEAR(logprobs[1], 0, 1e-4);
  EXPECT_NEAR(logprobs[2], -30, 1e-4);  // 'C' would follow.
  EXPECT_NEAR(logprobs[3], 0, 1e-4);
  EXPECT_NEAR(logprobs[4], 0, 1e-4);
  EXPECT_TRUE(choice.top(0).is_null());
  EXPECT_NEAR(double(choice.top(2)["C"]), 0, 1e-4);
  EXPECT_NEAR(double(choice.top(2)["X"]), -30, 1e-4);
  EXPECT_NE(body.find(R"("prompt_tokens":4,"completion_tokens":1,)"), std::string::npos) << body;
}

TEST(Echo, ScoresWithoutAnAnswer) {
  TestApi server;
  const std::string body =
      complete(server, R"("prompt":["ABX","K"],"max_tokens":0,"echo":true,"logprobs":1)");
  EXPECT_EQ(Choice(body).text(), "ABX");
  EXPECT_EQ(Choice(body).logprobs().size(), 3u);
  EXPECT_EQ(Choice(body).finish(), "length");
  EXPECT_EQ(Choice(body, 1).text(), "K");
  EXPECT_EQ(Choice(body, 1).logprobs(), std::vector<double>{1});
  EXPECT_NE(body.find(R"("prompt_tokens":4,"completion_tokens":0,"total_tokens":4)"),
            std::string::npos)
      << body;
  EXPECT_EQ(Choice(complete(server, R"("prompt":"AB","max_tokens":0,"echo":true)")).text(), "AB");
}

// lm-evaluation-harness asks for one token and sums token_logprobs[context:-1].
TEST(Echo, ScoresATextThatEndsWithTheEnd) {
  TestApi server;
  const Choice choice(
      complete(server, R"("prompt":"hi!","max_tokens":1,"echo":true,"logprobs":1)"));
  EXPECT_EQ(choice.logprobs().size(), 4u) << "the end token must be there to be left out";
  EXPECT_EQ(choice.text(), "hi!");
}

TEST(Echo, FillsTheContextToItsLastToken) {
  TestApi server({.context = 64});
  const std::string prompt(64, 'x');
  EXPECT_EQ(Choice(complete(server, R"("max_tokens":0,"echo":true,"logprobs":0,"prompt":")" +
                                        prompt + "\""))
                .logprobs()
                .size(),
            64u);
  EXPECT_EQ(error_code(server.post("/v1/completions", R"({"prompt":")" + prompt + "\"}").body),
            "context_length_exceeded");
}

TEST(Echo, IsStreamedInPieces) {
  TestOptions options;
  options.config.stream_pause_bytes = 4000;
  TestApi server(options);
  const std::string prompt = std::string(900, 'x') + "A";
  for (const std::string& more : {std::string(), std::string(R"(,"logprobs":5)")}) {
    const std::string body =
        server
            .post("/v1/completions", R"({"temperature":0,"stream":true,"echo":true,"max_tokens":3,)"
                                     R"("prompt":")" +
                                         prompt + "\"" + more + "}")
            .body;
    EXPECT_TRUE(body.ends_with("data: [DONE]\n\n"));
    std::string text;
    size_t scores = 0;
    std::vector<int64_t> offsets;
    for (size_t at = 0; (at = body.find("data: {", at)) != std::string::npos; ++at) {
      const std::string event = body.substr(at + 6, body.find("\n\n", at) - at - 6);
      EXPECT_LT(event.size(), 40'000u);
      const Choice choice(event);
      text += choice.text();
      if (more.empty() || event.find(R"("logprobs":null)") != std::string::npos) continue;
      scores += choice.logprobs().size();
      for (const int64_t offset : choice.offsets()) offsets.push_back(offset);
    }
    EXPECT_EQ(text, prompt + "BCD");
    if (more.empty()) continue;
    EXPECT_EQ(scores, 904u);
    ASSERT_EQ(offsets.size(), 904u);
    for (size_t i = 0; i < offsets.size(); ++i) ASSERT_EQ(offsets[i], static_cast<int64_t>(i));
  }
}

TEST(Echo, OfALongPromptIsWholeAtOnce) {
  TestApi server;
  const Choice choice(complete(server, R"("max_tokens":1,"echo":true,"logprobs":5,"prompt":")" +
                                           std::string(2000, 'x') + "\""));
  EXPECT_EQ(choice.text(), std::string(2000, 'x'));
  EXPECT_EQ(choice.logprobs().size(), 2001u);
}

TEST(Echo, CountsMemory) {
  TestOptions options;
  options.config.log_bytes_max = 200'000;
  TestApi server(options);
  const std::string prompt = R"("prompt":")" + std::string(1000, 'x') + R"(","max_tokens":1,)";
  EXPECT_EQ(server.post("/v1/completions", "{" + prompt + R"("logprobs":5})").status, 200);
  const auto refused =
      server.post("/v1/completions", "{" + prompt + R"("logprobs":5,"echo":true})");
  EXPECT_EQ(refused.status, 400) << refused.body;
}

TEST(BestOf, SendsTheLikeliest) {
  TestApi server;
  const auto run = [&](const std::string& more) {
    return server
        .post("/v1/completions",
              R"({"prompt":"A","temperature":2,"max_tokens":8,"seed":3,"logprobs":0,)"
              R"("logit_bias":{"256":-100,"120":30})" +
                  more + "}")
        .body;
  };
  const std::string all = run(R"(,"n":6)"), best = run(R"(,"best_of":6)");
  const std::string two = run(R"(,"best_of":6,"n":2)");
  const auto mean = [](const Choice& choice) {
    double sum = 0;
    for (const double logprob : choice.logprobs()) sum += logprob;
    return sum / static_cast<double>(choice.logprobs().size());
  };
  std::vector<std::pair<double, std::string>> ranked;
  for (size_t i = 0; i < 6; ++i) ranked.emplace_back(-mean(Choice(all, i)), Choice(all, i).text());
  std::ranges::stable_sort(ranked, {}, &std::pair<double, std::string>::first);
  ASSERT_LT(ranked[0].first, ranked[5].first);  // There is something to choose.
  EXPECT_EQ(Choice(best).text(), ranked[0].second);
  EXPECT_EQ(best.find(R"("index":1)"), std::string::npos);
  EXPECT_EQ(Choice(two, 0).text(), ranked[0].second);
  EXPECT_EQ(Choice(two, 1).text(), ranked[1].second);
  EXPECT_NE(best.find(R"("prompt_tokens":1,"completion_tokens":48,)"), std::string::npos) << best;
}

TEST(BestOf, SaysNothingOfLogprobsUnasked) {
  TestApi server;
  const std::string body = complete(server, R"("prompt":["A","K"],"best_of":3,"max_tokens":2)");
  EXPECT_EQ(Choice(body, 0).text(), "BC");
  EXPECT_EQ(Choice(body, 1).text(), "LM");
  EXPECT_NE(body.find(R"("logprobs":null)"), std::string::npos);
}

TEST(Suffix, IsSetBehindThePrefixForModelsThatInfill) {
  TestApi server({.infills = true});
  const std::string body =
      complete(server, R"("prompt":["def","x"],"suffix":"return","max_tokens":3)");
  EXPECT_EQ(Choice(body, 0).text(), "KLM");
  EXPECT_EQ(Choice(body, 1).text(), "KLM");
  EXPECT_NE(body.find(R"("prompt_tokens":22,)"), std::string::npos) << body;
  // A text's own markers are text.
  EXPECT_NE(complete(server, R"("prompt":"<|fim_middle|>","suffix":"r","max_tokens":1)")
                .find(R"("prompt_tokens":18,)"),
            std::string::npos);
  // And a marker ends the middle.
  const Choice ended(
      complete(server, R"("prompt":"a","suffix":"b","max_tokens":9,"logit_bias":{"258":100})"));
  EXPECT_EQ(ended.text(), "");
  EXPECT_EQ(ended.finish(), "stop");
}

TEST(Suffix, IsRefusedElsewhere) {
  TestApi server;
  const auto refused = server.post("/v1/completions", R"({"prompt":"a","suffix":"b"})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(error_code(refused.body), "unsupported_parameter");
  EXPECT_NE(refused.body.find("fill-in-the-middle"), std::string::npos);
  EXPECT_EQ(server.post("/v1/completions", R"({"prompt":"a","suffix":""})").status, 200);
  EXPECT_EQ(server.post("/v1/completions", R"({"prompt":[65],"suffix":"b"})").status, 400);
}

TEST(Infill, OrdersThePlacesAsTheModelsNamesSay) {
  const auto tokenizer = [](const std::vector<std::string>& names) {
    std::string json = byte_tokenizer_json(false, true);
    const char* kDefault[] = {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"};
    for (size_t i = 0; i < 3; ++i) json.replace(json.find(kDefault[i]), 14, names[i]);
    return *text::Tokenizer::load(json);
  };
  const auto prompt = [&](const std::vector<std::string>& names) {
    const auto loaded = tokenizer(names);
    const auto tokens = find_infill_tokens(*loaded);
    EXPECT_TRUE(tokens) << names[0];
    return tokens ? infill_prompt(*loaded, *tokens, "p", "s") : std::vector<int32_t>();
  };
  const std::vector<int32_t> prefix_first = {kPrefix, 'p', kSuffix, 's', kMiddle};
  EXPECT_EQ(prompt({"<fim_prefix>", "<fim_suffix>", "<fim_middle>"}), prefix_first);
  EXPECT_EQ(prompt({"\xe2\x96\x81<PRE>", "\xe2\x96\x81<SUF>", "\xe2\x96\x81<MID>"}), prefix_first);
  EXPECT_EQ(prompt({"<\xef\xbd\x9c"
                    "fim\xe2\x96\x81"
                    "begin\xef\xbd\x9c>",
                    "<\xef\xbd\x9c"
                    "fim\xe2\x96\x81hole\xef\xbd\x9c>",
                    "<\xef\xbd\x9c"
                    "fim\xe2\x96\x81"
                    "end\xef\xbd\x9c>"}),
            prefix_first);
  EXPECT_EQ(prompt({"[PREFIX]", "[SUFFIX]", "[X]"}),
            (std::vector<int32_t>{kSuffix, 's', kPrefix, 'p'}));
  EXPECT_EQ(prompt({"<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"}),
            (std::vector<int32_t>{kSuffix, 's', kPrefix, 'p', kMiddle}));
  EXPECT_FALSE(find_infill_tokens(*tokenizer({"<fim_prefix>", "<fim_suffix>", "[X]"})));
}

}  // namespace
}  // namespace weir::api::openai
