// /infill: its request, the prompt that becomes of it, its answers.
#include "api/llama/infill.h"

#include <gtest/gtest.h>

#include "api/test_api.h"

namespace weir::api::llama {
namespace {

constexpr const char* kHole = R"({"input_prefix":"def","input_suffix":"return","temperature":0)";

TEST(Infill, PutsOtherFilesFirst) {
  const auto tokenizer = *text::Tokenizer::load(byte_tokenizer_json(false, true));
  auto tokens = find_infill_tokens(*tokenizer);
  ASSERT_TRUE(tokens);
  EXPECT_EQ(tokens->file, kMark);
  EXPECT_EQ(tokens->repository, -1);
  const InfillFile files[] = {{"a", "x"}, {"b", "y\n"}};
  const std::vector<int32_t> hole = {kPrefix, 'p', kSuffix, 's', kMiddle};
  const auto prompt_of = [&](std::vector<int32_t> ids) {
    ids.insert(ids.end(), hole.begin(), hole.end());
    return ids;
  };
  EXPECT_EQ(infill_prompt(*tokenizer, *tokens, "p", "s"), hole);
  EXPECT_EQ(infill_prompt(*tokenizer, *tokens, "p", "s", files),
            prompt_of({kMark, 'a', '\n', 'x', '\n', kMark, 'b', '\n', 'y', '\n', kMark, 'c', 'u',
                       'r', 'r', 'e', 'n', 't', '\n'}));
  // A model that knows no files reads them as text.
  tokens->file = -1;
  EXPECT_EQ(infill_prompt(*tokenizer, *tokens, "p", "s", files),
            prompt_of({'a', '\n', 'x', '\n', 'b', '\n', 'y', '\n'}));
}

TEST(Infill, AnswersWhole) {
  TestApi server({.infills = true});
  const auto answer = server.post("/infill", std::string(kHole) + R"(,"n_predict":3})");
  EXPECT_EQ(answer.status, 200);
  for (const char* part :
       {R"({"index":0,"content":"KLM","tokens":[],"id_slot":-1,"stop":true,"model":"m",)",
        R"("tokens_predicted":3,"tokens_evaluated":12,"generation_settings":{"n_predict":3,)",
        R"("truncated":false,"stop_type":"limit","stopping_word":"","tokens_cached":15,)",
        R"("cache_n":0,"prompt_n":12)"})
    EXPECT_NE(answer.body.find(part), std::string::npos) << answer.body;
  // What is typed comes after the prefix: the prompt is longer by it.
  const auto typed =
      server.post("/infill", std::string(kHole) + R"(,"prompt":" f","n_predict":9,"stop":["M"]})");
  EXPECT_NE(typed.body.find(R"("content":"KL",)"), std::string::npos) << typed.body;
  EXPECT_NE(typed.body.find(R"("tokens_evaluated":14,)"), std::string::npos) << typed.body;
  EXPECT_NE(typed.body.find(R"("stop_type":"word","stopping_word":"M")"), std::string::npos);
  // Without a length it goes on to its end, or the context's; for none the prompt is computed.
  const auto ended = server.post("/infill", std::string(kHole) + R"(,"logit_bias":{"256":100}})");
  EXPECT_NE(ended.body.find(R"("stop_type":"eos")"), std::string::npos) << ended.body;
  const auto endless = server.post("/infill", std::string(kHole) + "}");
  EXPECT_NE(endless.body.find(R"("tokens_cached":4096,)"), std::string::npos);
  const auto nothing = server.post("/infill", std::string(kHole) + R"(,"n_predict":0})");
  EXPECT_NE(nothing.body.find(R"("content":"","tokens":[],"id_slot":-1,"stop":true)"),
            std::string::npos)
      << nothing.body;
}

TEST(Infill, StreamsEventsAsLlamaServerDoes) {
  TestApi server({.infills = true});
  const auto answer =
      server.post("/infill", std::string(kHole) + R"(,"n_predict":2,"stream":true})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body.starts_with(
      "data: {\"index\":0,\"content\":\"K\",\"tokens\":[75],\"id_slot\":-1,\"stop\":false,"
      "\"tokens_predicted\":1,\"tokens_evaluated\":12}\n\n"
      "data: {\"index\":0,\"content\":\"L\",\"tokens\":[76],\"id_slot\":-1,\"stop\":false,"
      "\"tokens_predicted\":2,\"tokens_evaluated\":12}\n\n"
      "data: "
      "{\"index\":0,\"content\":\"\",\"tokens\":[],\"id_slot\":-1,\"stop\":true,\"model\":\"m\""))
      << answer.body;
  EXPECT_NE(answer.body.find(R"("stop_type":"limit")"), std::string::npos) << answer.body;
}

TEST(Infill, RefusesWhatItCannotRead) {
  TestApi server({.infills = true});
  const auto refused = [&](const std::string& more, const std::string& param) {
    const auto answer = server.post("/infill", std::string(kHole) + more + "}");
    EXPECT_EQ(answer.status, 400) << more;
    EXPECT_NE(answer.body.find("\"param\":\"" + param + "\""), std::string::npos) << answer.body;
  };
  refused(R"(,"input_extra":"x")", "input_extra");
  refused(R"(,"input_extra":["x"])", "input_extra[0]");
  refused(R"(,"input_extra":[{"text":"x"},{"filename":"y"}])", "input_extra[1].text");
  refused(R"(,"input_extra":[{"text":"x","filename":3}])", "input_extra[0].filename");
  refused(R"(,"prompt":[65])", "prompt");
  refused(R"(,"n_predict":-3)", "n_predict");
  EXPECT_EQ(server.post("/infill", R"({"input_prefix":"A"})").status, 400);
}

TEST(Infill, SaysWhereTheModelCannot) {
  TestApi server;
  const auto answer = server.post("/infill", std::string(kHole) + "}");
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(error_code(answer.body), "unsupported_parameter");
  EXPECT_NE(answer.body.find("fill-in-the-middle"), std::string::npos) << answer.body;
}

}  // namespace
}  // namespace weir::api::llama
