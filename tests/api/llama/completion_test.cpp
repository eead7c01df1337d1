// llama-server's /completion, /completions and /apply-template.
#include "api/llama/completion.h"

#include <gtest/gtest.h>

#include "api/test_api.h"

namespace weir::api::llama {
namespace {

std::string complete(const TestApi& server, const std::string& more,
                     const std::string& prompt = R"("A")") {
  const auto answer = server.post(
      "/completion", R"({"temperature":0,"seed":1,"n_predict":3,"prompt":)" + prompt + more + "}");
  EXPECT_EQ(answer.status, 200) << answer.body;
  return answer.body;
}

JsonValue member(const JsonDoc& doc, std::string_view pointer) {
  return doc.root().at_pointer(pointer).value();
}

TEST(LlamaCompletion, AnswersWhole) {
  TestApi server;
  const std::string body = complete(server, R"(,"min_p":0,"top_k":0,"top_p":1)");
  EXPECT_NE(body.find(R"("timings":{"cache_n":0,"prompt_n":1,"prompt_ms":)"), std::string::npos);
  EXPECT_EQ(without_timings(body),
            R"({"index":0,"content":"BCD","tokens":[],"id_slot":-1,"stop":true,"model":"m",)"
            R"("tokens_predicted":3,"tokens_evaluated":1,"generation_settings":{"n_predict":3,)"
            R"("seed":1,"temperature":0,"top_k":0,"top_p":1,"min_p":0,"typical_p":1,)"
            R"("top_n_sigma":-1,"xtc_probability":0,"xtc_threshold":0.1,"dynatemp_range":0,)"
            R"("dynatemp_exponent":1,"repeat_penalty":1,"repeat_last_n":-1,"presence_penalty":0,)"
            R"("frequency_penalty":0,"dry_multiplier":0,"dry_base":1.75,"dry_allowed_length":2,)"
            R"("dry_penalty_last_n":64,"min_keep":1,)"
            R"("max_tokens":3,"stop":[],"logit_bias":[],"ignore_eos":false,"stream":false,)"
            R"("n_probs":0},"prompt":"A","has_new_line":false,"truncated":false,)"
            R"("stop_type":"limit","stopping_word":"","tokens_cached":4})");
}

TEST(LlamaCompletion, SaysHowItEnded) {
  TestApi server;
  const auto body = server.post("/completion", R"({"temperature":0,"prompt":"A","stop":["D"],)"
                                               R"("return_tokens":true})");
  const JsonDoc word = *JsonDoc::parse(body.body);
  EXPECT_EQ(std::string_view(member(word, "/content")), "BC");
  EXPECT_EQ(std::string_view(member(word, "/stop_type")), "word");
  EXPECT_EQ(std::string_view(member(word, "/stopping_word")), "D");
  EXPECT_EQ(int64_t(member(word, "/tokens/0")), 'B');
  // An end token is one of the tokens, but has no text.
  const auto ended = server.post("/completion", R"({"temperature":0,"prompt":"x","n_predict":-1,)"
                                                R"("return_tokens":true})");
  const JsonDoc end = *JsonDoc::parse(ended.body);
  EXPECT_EQ(std::string_view(member(end, "/content")), "");
  EXPECT_EQ(std::string_view(member(end, "/stop_type")), "eos");
  EXPECT_EQ(int64_t(member(end, "/tokens/0")), kEnd);
  EXPECT_EQ(member(end, "/tokens").get_array().value_unsafe().size(), 1u);
}

TEST(LlamaCompletion, ReadsPromptsOfManyForms) {
  TestApi server;
  const auto prompt_of = [&](const std::string& prompt) {
    const JsonDoc doc = *JsonDoc::parse(complete(server, "", prompt));
    return std::string(std::string_view(member(doc, "/prompt"))) + "|" +
           std::string(std::string_view(member(doc, "/content")));
  };
  EXPECT_EQ(prompt_of("[120,65]"), "xA|BCD");
  EXPECT_EQ(prompt_of(R"([120,"yz",65])"), "xyzA|BCD");
  EXPECT_EQ(prompt_of(R"(["yz",66])"), "yzB|CDE");
  EXPECT_EQ(prompt_of(R"({"prompt_string":"A"})"), "A|BCD");
  const auto list = JsonDoc::parse(complete(server, "", R"(["A",[120,"B"],[67]])"));
  ASSERT_TRUE(list);
  EXPECT_EQ(std::string_view(member(*list, "/0/content")), "BCD");
  EXPECT_EQ(std::string_view(member(*list, "/1/content")), "CDE");
  EXPECT_EQ(std::string_view(member(*list, "/2/content")), "DEF");
  EXPECT_EQ(int64_t(member(*list, "/2/index")), 2);
  const auto several = JsonDoc::parse(complete(server, R"(,"n_cmpl":2)"));
  EXPECT_EQ(std::string_view(member(*several, "/1/content")), "BCD");
}

TEST(LlamaCompletion, StreamsAsLlamaServerDoes) {
  TestApi server;
  const std::string body = complete(server, R"(,"stream":true,"n_probs":1)");
  const std::string first =
      "data: {\"index\":0,\"content\":\"B\",\"tokens\":[66],\"id_slot\":-1,\"stop\":false,"
      "\"tokens_predicted\":1,\"tokens_evaluated\":1,\"completion_probabilities\":[{\"id\":66,"
      "\"token\":\"B\",\"logprob\":";
  EXPECT_TRUE(body.starts_with(first)) << body;
  EXPECT_EQ(body.find("[DONE]"), std::string::npos);
  const size_t last = body.rfind("data: ");
  EXPECT_NE(body.find(R"("content":"","tokens":[],"id_slot":-1,"stop":true,"model":"m")", last),
            std::string::npos)
      << body;
  EXPECT_NE(body.find(R"("stop_type":"limit")", last), std::string::npos);
}

TEST(LlamaCompletion, ListsProbabilities) {
  TestApi server;
  const JsonDoc doc = *JsonDoc::parse(complete(server, R"(,"n_probs":2)"));
  EXPECT_EQ(member(doc, "/completion_probabilities").get_array().value_unsafe().size(), 3u);
  EXPECT_EQ(int64_t(member(doc, "/completion_probabilities/0/id")), 'B');
  EXPECT_EQ(int64_t(member(doc, "/completion_probabilities/0/top_logprobs/0/id")), 'B');
  EXPECT_EQ(int64_t(member(doc, "/completion_probabilities/0/bytes/0")), 'B');
}

TEST(LlamaCompletion, TakesBiasesAsPairs) {
  TestApi server;
  const auto content = [&](const std::string& more) {
    const JsonDoc doc = *JsonDoc::parse(complete(server, more));
    return std::string(std::string_view(member(doc, "/content")));
  };
  EXPECT_EQ(content(R"(,"logit_bias":[[90,50]])"), "ZZZ");
  EXPECT_EQ(content(R"(,"logit_bias":[["Z",50]])"), "ZZZ");
  EXPECT_EQ(content(R"(,"logit_bias":{"90":50})"), "ZZZ");
  EXPECT_NE(content(R"(,"logit_bias":[["C",false]])").substr(0, 2), "BC");
  const auto refused = server.post("/completion", R"({"prompt":"A","logit_bias":[[90,true]]})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find(R"("param":"logit_bias[0][1]")"), std::string::npos) << refused.body;
}

TEST(LlamaCompletion, IsCompletionsWithoutAVersion) {
  TestApi server;
  const std::string body = R"({"temperature":0,"seed":7,"prompt":"A","n_predict":1})";
  EXPECT_EQ(without_timings(server.post("/completions", body).body),
            without_timings(server.post("/completion", body).body));
  EXPECT_EQ(server.post("/completion", R"({"prompt":"A","post_sampling_probs":true})").status, 400);
}

TEST(ApplyTemplate, ShowsWhatTheModelReads) {
  TestApi server;
  const auto answer = server.post("/apply-template", TestApi::chat_body());
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, R"({"prompt":"[user]Hi[assistant]"})");
  EXPECT_EQ(
      server.post("/apply-template", TestApi::chat_body(R"(,"add_generation_prompt":false)")).body,
      R"({"prompt":"[user]Hi"})");
  EXPECT_EQ(server.post("/apply-template", R"({"messages":[]})").status, 400);
}

}  // namespace
}  // namespace weir::api::llama
