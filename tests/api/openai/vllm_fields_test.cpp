// Fields that vLLM has: what may be written, what of the prompt is read and shown, token ids.
#include <gtest/gtest.h>

#include <cstring>

#include "api/answer/prompt_logprobs.h"
#include "api/test_api.h"

namespace weir::api::openai {
namespace {

JsonDoc post(const TestApi& server, const std::string& path, const std::string& body) {
  const auto answer = server.post(path, body);
  EXPECT_EQ(answer.status, 200) << answer.body;
  return *JsonDoc::parse(answer.body);
}
JsonDoc complete(const TestApi& server, const std::string& more,
                 const std::string& prompt = R"("A")") {
  return post(server, "/v1/completions",
              R"({"temperature":0,"max_tokens":3,"prompt":)" + prompt + more + "}");
}
std::string text(const JsonDoc& doc, std::string_view pointer = "/choices/0/text") {
  return std::string(std::string_view(doc.root().at_pointer(pointer).value()));
}
std::string raw(const JsonDoc& doc, std::string_view pointer) {
  const auto value = doc.root().at_pointer(pointer);
  if (value.error() != simdjson::SUCCESS) return "absent";
  std::string out;
  JsonWriter(out).value(value.value_unsafe());
  return out;
}

TEST(BadWords, AreNotWritten) {
  TestApi server;
  EXPECT_EQ(text(complete(server, "")), "BCD");
  EXPECT_EQ(text(complete(server, R"(,"bad_words":["C"])")).find('C'), std::string::npos);
  // Only where the whole of it would stand: B, then anything but C.
  const std::string pair = text(complete(server, R"(,"bad_words":["BC"])"));
  EXPECT_EQ(pair.substr(0, 1), "B");
  EXPECT_NE(pair.substr(1, 1), "C");
  EXPECT_EQ(text(complete(server, R"(,"bad_words":["BD"," ",""])")), "BCD");
  // With a space before it: ' ' follows '5', then its text is banned as " x" would be.
  EXPECT_EQ(text(complete(server, R"(,"bad_words":["BCD"])")).substr(0, 2), "BC");
  const auto refused = server.complete(R"(,"bad_words":[3])");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find(R"("param":"bad_words[0]")"), std::string::npos) << refused.body;
}

TEST(BadWords, LeaveTheLogprobsAsTheyAre) {
  TestApi server;
  const JsonDoc doc = complete(server, R"(,"bad_words":["B"],"logprobs":1)");
  EXPECT_GT(double(doc.root().at_pointer("/choices/0/logprobs/top_logprobs/0/B").value()), -1)
      << "the likeliest token of the raw distribution is the one that was banned";
}

TEST(BadWords, YieldToAForm) {
  TestApi server;
  EXPECT_EQ(text(complete(server, R"(,"bad_words":["B"],"guided_choice":["AB"])")), "AB");
  EXPECT_EQ(text(complete(server, R"(,"bad_words":["B"],"guided_choice":["AB","AX"])")), "AX");
}

TEST(AllowedTokens, AreTheOnlyOnes) {
  TestApi server;
  EXPECT_EQ(text(complete(server, R"(,"allowed_token_ids":[88])")), "XXX");
  EXPECT_EQ(text(complete(server, R"(,"allowed_token_ids":[66,67,256])")).substr(0, 2), "BC");
  EXPECT_EQ(text(complete(server, R"(,"allowed_token_ids":[88,89],"guided_choice":["AB","XY"])")),
            "XY");
  for (const char* value : {"[]", "[1000]", "3"}) {
    const auto refused = server.complete(R"(,"allowed_token_ids":)" + std::string(value));
    EXPECT_EQ(refused.status, 400) << value;
    EXPECT_NE(refused.body.find("allowed_token_ids"), std::string::npos) << refused.body;
  }
}

TEST(AllowedTokens, AndAFormThatTheyCannotSpellEndTheAnswerWithAnError) {
  TestApi server;
  EXPECT_EQ(server.complete(R"(,"allowed_token_ids":[88],"guided_choice":["AB"])").status, 500);
}

TEST(Truncation, KeepsTheEndOrTheBeginning) {
  TestApi server;
  EXPECT_EQ(
      raw(complete(server, R"(,"truncate_prompt_tokens":2,"return_token_ids":true)", R"("xyzA")"),
          "/choices/0/prompt_token_ids"),
      "[122,65]");
  EXPECT_EQ(raw(complete(server,
                         R"(,"truncate_prompt_tokens":2,"truncation_side":"right",)"
                         R"("return_token_ids":true)",
                         R"("AByz")"),
                "/choices/0/prompt_token_ids"),
            "[65,66]");
  const std::string longer = "\"" + std::string(5000, 'x') + "A\"";
  const JsonDoc cut = complete(server, R"(,"truncate_prompt_tokens":-1)", longer);
  EXPECT_EQ(text(cut), "BCD");
  EXPECT_EQ(raw(cut, "/usage/prompt_tokens"), std::to_string(4096 - 3));
  const JsonDoc chat = post(server, "/v1/chat/completions",
                            TestApi::chat_body(R"(,"truncate_prompt_tokens":3,"max_tokens":1)"));
  EXPECT_EQ(raw(chat, "/usage/prompt_tokens"), "3");
  const JsonDoc embedded =
      post(server, "/v1/embeddings", R"({"input":"xyzA","truncate_prompt_tokens":1})");
  EXPECT_EQ(raw(embedded, "/usage/prompt_tokens"), "1");
  EXPECT_EQ(server.complete(R"(,"truncate_prompt_tokens":0)").status, 400);
}

// A limit beyond the context is no reason to cut: at most a quarter is kept free for the answer.
TEST(Truncation, OfAPromptThatFitsCutsNothingHoweverLongTheAnswerMayBe) {
  TestApi server;
  const auto prompt_tokens = [&](size_t length, const std::string& max_tokens) {
    return raw(post(server, "/v1/completions",
                    R"({"temperature":0,"truncate_prompt_tokens":-1,"max_tokens":)" + max_tokens +
                        R"(,"prompt":")" + std::string(length, '!') + "\"}"),
               "/usage/prompt_tokens");
  };
  EXPECT_EQ(prompt_tokens(200, "100000"), "200");
  EXPECT_EQ(prompt_tokens(3072, "4096"), "3072");
  EXPECT_EQ(prompt_tokens(5000, "100000"), "3072");
  EXPECT_EQ(prompt_tokens(5000, "96"), "4000");
}

TEST(TokenIds, StandBesideTheText) {
  TestApi server;
  const JsonDoc whole = complete(server, R"(,"return_token_ids":true,"n":2)");
  for (const char* choice : {"/choices/0", "/choices/1"}) {
    EXPECT_EQ(raw(whole, std::string(choice) + "/token_ids"), "[66,67,68]");
    EXPECT_EQ(raw(whole, std::string(choice) + "/prompt_token_ids"), "[65]");
  }
  // The end token is one of them.
  EXPECT_EQ(raw(complete(server, R"(,"return_token_ids":true)", R"("x")"), "/choices/0/token_ids"),
            "[256]");
  const JsonDoc chat = post(server, "/v1/chat/completions",
                            TestApi::chat_body(R"(,"return_token_ids":true,"max_tokens":2)"));
  EXPECT_EQ(raw(chat, "/choices/0/token_ids"), "[104,101]");
  EXPECT_TRUE(raw(chat, "/prompt_token_ids").starts_with("[91,117,")) << raw(chat, "");
  EXPECT_EQ(raw(complete(server, ""), "/choices/0/token_ids"), "absent");
}

TEST(TokenIds, AreStreamed) {
  TestApi server;
  const std::string chat =
      server.chat(R"(,"return_token_ids":true,"max_tokens":2,"stream":true)").body;
  const size_t first = chat.find("\n\n");
  EXPECT_NE(chat.substr(0, first).find(R"("prompt_token_ids":[91,)"), std::string::npos) << chat;
  EXPECT_EQ(chat.find("prompt_token_ids", first), std::string::npos) << chat;
  EXPECT_EQ(chat.substr(0, first).find(R"("token_ids":[)"), std::string::npos) << chat;
  EXPECT_NE(chat.find(R"("delta":{"content":"h"},"logprobs":null,"finish_reason":null,)"
                      R"("token_ids":[104]}])"),
            std::string::npos)
      << chat;
  const std::string text =
      server.complete(R"(,"return_token_ids":true,"max_tokens":1,"stream":true)").body;
  EXPECT_NE(text.find(R"("token_ids":[66],"prompt_token_ids":[65]}])"), std::string::npos) << text;
}

TEST(TokenNames, AreIdsWhereAskedFor) {
  TestApi server;
  const JsonDoc doc = complete(server, R"(,"return_tokens_as_token_ids":true,"logprobs":1)");
  EXPECT_EQ(raw(doc, "/choices/0/logprobs/tokens"),
            R"(["token_id:66","token_id:67","token_id:68"])");
  EXPECT_NE(raw(doc, "/choices/0/logprobs/top_logprobs/0/token_id:66"), "absent");
  const JsonDoc chat = post(
      server, "/v1/chat/completions",
      TestApi::chat_body(R"(,"return_tokens_as_token_ids":true,"logprobs":true,"max_tokens":1)"));
  EXPECT_EQ(text(chat, "/choices/0/logprobs/content/0/token"), "token_id:104");
}

TEST(Logprobs, OfCompletionsGoToTwenty) {
  TestApi server;
  const JsonDoc doc = complete(server, R"(,"logprobs":20,"max_tokens":1)");
  EXPECT_EQ(doc.root()
                .at_pointer("/choices/0/logprobs/top_logprobs/0")
                .get_object()
                .value_unsafe()
                .size(),
            20u);
  EXPECT_EQ(server.complete(R"(,"logprobs":21)").status, 400);
}

TEST(PromptLogprobs, SayEachTokensRank) {
  TestApi server;
  const JsonDoc doc = complete(server, R"(,"prompt_logprobs":1,"max_tokens":1,"n":2)", R"("ABD")");
  for (const std::string list : {"/choices/0/prompt_logprobs", "/choices/1/prompt_logprobs"}) {
    EXPECT_EQ(raw(doc, list + "/0"), "null");
    // 'B' is what follows 'A'; 'D' does not follow 'B', and of the others, all alike, 68 have
    // smaller ids, one of which is not: 'C' goes first.
    EXPECT_EQ(raw(doc, list + "/1/66/rank"), "1");
    EXPECT_EQ(text(doc, list + "/1/66/decoded_token"), "B");
    EXPECT_EQ(raw(doc, list + "/2/68/rank"), "69");
    EXPECT_EQ(raw(doc, list + "/2/67/rank"), "1");
    EXPECT_EQ(raw(doc, list + "/3"), "absent");
  }
  const JsonDoc chat = post(server, "/v1/chat/completions",
                            TestApi::chat_body(R"(,"prompt_logprobs":0,"max_tokens":1)"));
  EXPECT_EQ(raw(chat, "/prompt_logprobs/0"), "null");
  EXPECT_NE(raw(chat, "/prompt_logprobs/1/117/logprob"), "absent");
  EXPECT_EQ(raw(complete(server, R"(,"prompt_logprobs":1)"), "/choices/0/prompt_logprobs"),
            "[null]");
  const auto streamed = server.complete(R"(,"prompt_logprobs":1,"stream":true)");
  EXPECT_EQ(streamed.status, 400);
  EXPECT_EQ(server.complete(R"(,"prompt_logprobs":-1)").status, 400);
}

// The JSON of some megabytes: see also PromptLogprobs.AreMadeBitByBit.
TEST(PromptLogprobs, OfALongPromptAreAllThere) {
  TestApi server;
  std::string prompt = "\"";
  for (int i = 0; i < 4000; ++i) prompt += static_cast<char>('A' + i % 26);
  prompt += '"';
  for (const char* more : {"", R"(,"n":2)", R"(,"echo":true,"logprobs":20)"}) {
    const auto answer =
        server.post("/v1/completions", R"({"temperature":0,"max_tokens":1,"prompt_logprobs":20,)"
                                       R"("prompt":)" +
                                           prompt + more + "}");
    ASSERT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("Transfer-Encoding"), "chunked");
    const auto doc = JsonDoc::parse(answer.body);
    ASSERT_TRUE(doc) << more;
    for (const JsonValue choice : doc->root()["choices"].get_array()) {
      int64_t at = -1;
      for (const JsonValue entry : choice["prompt_logprobs"].get_array()) {
        if (++at == 0) continue;
        const std::string id = std::to_string('A' + at % 26);
        EXPECT_EQ(static_cast<int64_t>(entry[id]["rank"]), 1);
        EXPECT_EQ(entry.get_object().value_unsafe().size(), 20u);
      }
      EXPECT_EQ(at, 3999);
    }
    const auto tokens = doc->root().at_pointer("/choices/0/logprobs/tokens");
    const bool echoes = tokens.error() == simdjson::SUCCESS;
    EXPECT_EQ(echoes ? tokens.get_array().size() : 0, std::strlen(more) > 10 ? 4001u : 0u);
  }
}

TEST(PromptLogprobs, AreMadeBitByBit) {
  const auto tokenizer = text::Tokenizer::load(byte_tokenizer_json());
  ASSERT_TRUE(tokenizer);
  sched::Request request(std::vector<int32_t>(1000, 'A'), {}, 1, false);
  request.prompt_log = std::make_unique<TokenLog>(999, 2);
  request.prompt_ranks.assign(999, 1);
  const TokenLogprob top[] = {{'A', -0.5f}, {'B', -1.5f}};
  for (int i = 0; i < 999; ++i) request.prompt_log->append(top[0], top);

  PromptLogprobs whole(**tokenizer, 2), bits(**tokenizer, 2);
  whole.make(request, size_t{1} << 30);
  EXPECT_TRUE(whole.done());
  constexpr size_t kBytes = 1000, kEntry = 200;
  while (!bits.done()) bits.make(request, kBytes);
  std::string joined;
  for (const std::string& part : bits.take()) {
    EXPECT_LE(part.size(), kBytes + kEntry);
    joined += part;
  }
  EXPECT_GT(joined.size(), 50 * kBytes);
  EXPECT_EQ(joined, whole.take().at(0));
}

TEST(PromptLogprobs, AgreeWithEcho) {
  TestApi server;
  const JsonDoc doc = complete(
      server, R"(,"prompt_logprobs":2,"echo":true,"logprobs":1,"max_tokens":1)", R"("ABD")");
  EXPECT_EQ(raw(doc, "/choices/0/prompt_logprobs/2/68/logprob"),
            raw(doc, "/choices/0/logprobs/token_logprobs/2"));
  EXPECT_EQ(doc.root()
                .at_pointer("/choices/0/logprobs/top_logprobs/2")
                .get_object()
                .value_unsafe()
                .size(),
            2u)
      << "one alternative and the token itself";
}

TEST(Usage, IsInEveryEventWhereAskedFor) {
  TestApi server;
  const std::string body = server
                               .chat(R"(,"stream":true,"max_tokens":2,"stream_options":{)"
                                     R"("include_usage":true,"continuous_usage_stats":true})")
                               .body;
  EXPECT_NE(body.find(R"("completion_tokens":0,)"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("completion_tokens":1,)"), std::string::npos) << body;
  EXPECT_EQ(body.find(R"("usage":null)"), std::string::npos) << body;
  EXPECT_EQ(server.chat(R"(,"stream":true,"stream_options":{"continuous_usage_stats":3})").status,
            400);
}

TEST(Usage, IsThatOfThePromptWhereTheLastMessageIsEchoed) {
  TestApi server;
  const std::string body =
      server
          .post("/v1/chat/completions",
                R"({"temperature":0,"max_tokens":2,"echo":true,"stream":true,"logprobs":true,)"
                R"("continue_final_message":true,"add_generation_prompt":false,)"
                R"("stream_options":{"include_usage":true,"continuous_usage_stats":true},)"
                R"("messages":[{"role":"assistant","content":"AB"}]})")
          .body;
  EXPECT_EQ(body.find(R"("prompt_tokens":0,)"), std::string::npos) << body;
  const size_t echoed = body.find(R"("content":"AB"},"logprobs":null)");
  ASSERT_NE(echoed, std::string::npos) << body;
  const std::string event = body.substr(echoed, body.find("\n\n", echoed) - echoed);
  EXPECT_NE(event.find(R"("completion_tokens":0,)"), std::string::npos) << event;
  EXPECT_NE(body.find(R"("content":"C"},"logprobs":{)"), std::string::npos) << body;
}

TEST(Echo, OfAChatBeginsWithTheLastMessage) {
  TestApi server;
  const auto answer = [&](const std::string& role, const std::string& more) {
    return post(server, "/v1/chat/completions",
                R"({"temperature":0,"max_tokens":2,"echo":true,"messages":[{"role":")" + role +
                    R"(","content":"AB"}])" + more + "}");
  };
  EXPECT_EQ(text(answer("assistant", R"(,"continue_final_message":true,)"
                                     R"("add_generation_prompt":false)"),
                 "/choices/0/message/content"),
            "ABCD");
  EXPECT_EQ(text(answer("user", ""), "/choices/0/message/content"), "he");
}

TEST(Reasoning, IsLeftOutWhereAskedFor) {
  TestOptions options;
  // The prompt opens the reasoning; a bias lets the model say h for ever.
  options.chat_template = "{% if 0 %}</think>{% endif %}{{ messages[0].content }}<think>\n";
  TestApi server(options);
  const std::string asked = R"(,"max_tokens":3,"logit_bias":{"104":100})";
  const JsonDoc shown = post(server, "/v1/chat/completions", TestApi::chat_body(asked));
  EXPECT_EQ(text(shown, "/choices/0/message/reasoning_content"), "hhh");
  const JsonDoc left_out = post(server, "/v1/chat/completions",
                                TestApi::chat_body(asked + R"(,"include_reasoning":false)"));
  EXPECT_EQ(raw(left_out, "/choices/0/message/reasoning_content"), "absent");
  EXPECT_EQ(text(left_out, "/choices/0/message/content"), "");
  EXPECT_EQ(raw(left_out, "/usage/completion_tokens_details/reasoning_tokens"), "3");
  const std::string streamed =
      server.chat(asked + R"(,"include_reasoning":false,"stream":true)").body;
  EXPECT_EQ(streamed.find("reasoning"), std::string::npos) << streamed;
  EXPECT_NE(streamed.find(R"("finish_reason":"length")"), std::string::npos) << streamed;
}

TEST(BeamSearch, IsRefusedByName) {
  TestApi server;
  const auto refused = server.complete(R"(,"use_beam_search":true)");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find(R"("param":"use_beam_search")"), std::string::npos) << refused.body;
  EXPECT_EQ(server.complete(R"(,"use_beam_search":false)").status, 200);
}

TEST(RequestTemplate, IsForTheServerToAllow) {
  TestApi server;
  const std::string own = R"(,"max_tokens":1,"chat_template":"{{ messages[0].content }}!")";
  const auto refused = server.chat(own);
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("--trust-request-template"), std::string::npos) << refused.body;
  TestOptions options;
  options.config.trust_request_template = true;
  TestApi trusting(options);
  const JsonDoc doc = post(trusting, "/v1/chat/completions", TestApi::chat_body(own));
  EXPECT_EQ(raw(doc, "/usage/prompt_tokens"), "3");
  const auto broken = trusting.chat(R"(,"chat_template":"{% for")");
  EXPECT_EQ(broken.status, 400);
  EXPECT_NE(broken.body.find(R"("param":"chat_template")"), std::string::npos) << broken.body;
}

TEST(Embeddings, OfAConversation) {
  TestApi server;
  const JsonDoc doc = post(server, "/v1/embeddings",
                           R"({"messages":[{"role":"user","content":"Hi"}],"normalize":false})");
  EXPECT_EQ(raw(doc, "/usage/prompt_tokens"), "8");  // [user]Hi
  EXPECT_EQ(raw(doc, "/data/0/embedding/0"), std::to_string(int{'i'}));
  const JsonDoc open = post(server, "/v1/embeddings",
                            R"({"messages":[{"role":"user","content":"Hi"}],)"
                            R"("add_generation_prompt":true})");
  EXPECT_EQ(raw(open, "/usage/prompt_tokens"), "19");
}

}  // namespace
}  // namespace weir::api::openai
