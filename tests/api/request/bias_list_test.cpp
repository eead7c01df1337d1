// Biases of tokens: each once, and no more than a choice may hold and repeat.
#include "api/request/bias_list.h"

#include <gtest/gtest.h>

#include <limits>

#include "api/llama/shape.h"
#include "api/memory/memory_cost.h"
#include "api/test_api.h"

namespace weir::api {
namespace {

// `count` biases of a text of 256 bytes.
std::string text_biases(size_t count) {
  std::string list;
  for (size_t i = 0; i < count; ++i)
    list += (i > 0 ? "," : "") + ("[\"" + std::string(kBadWordBytesMax, 'Z') + "\",0.25]");
  return R"("logit_bias":[)" + list + "]";
}

TEST(BiasList, SumsWhatIsAddedToAToken) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  BiasList list;
  const std::pair<int32_t, float> added[] = {{7, 1}, {5, 2}, {7, 0.5f}, {3, kNever}, {3, 100}};
  for (const auto& [token, bias] : added) ASSERT_TRUE(list.add(token, bias));
  EXPECT_EQ(std::move(list).take(),
            (std::vector<std::pair<int32_t, float>>{{7, 1.5f}, {5, 2}, {3, kNever}}));
}

TEST(BiasList, RefusesMoreTokensThanAChoiceMayHold) {
  BiasList list;
  for (size_t i = 0; i < kLogitBiasMax; ++i) ASSERT_TRUE(list.add(static_cast<int32_t>(i), 1));
  EXPECT_TRUE(list.add(0, 1));  // Not one more.
  const auto refused = list.add(static_cast<int32_t>(kLogitBiasMax), 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(refused.error().param, "logit_bias");
}

TEST(BiasList, OfLongTextsStaysSmall) {
  TestApi server;
  const auto answer = server.post("/completion", R"({"prompt":"A","n_predict":1,"n_cmpl":3,)" +
                                                     text_biases(kLogitBiasMax) + "}");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_LT(answer.body.size(), 10'000u);
  const JsonDoc doc = *JsonDoc::parse(answer.body);
  const JsonValue biases = doc.root().at_pointer("/2/generation_settings/logit_bias").value();
  ASSERT_EQ(biases.get_array().value_unsafe().size(), 1u);
  EXPECT_EQ(double(biases.at_pointer("/0/bias")), 0.25 * kBadWordBytesMax * kLogitBiasMax);
}

TEST(BiasList, IsLeasedForEachChoice) {
  std::string biases;
  for (int token = 0; token < 200; ++token)
    biases += (token > 0 ? ",[" : "[") + std::to_string(token) + ",-99.99999]";
  const std::string stop(kStopBytesMax, '\x01');
  GenerateRequest asked;
  asked.stop = {stop};
  sample::SamplingParams params;
  params.logit_bias.assign(200, {151'643, -99.99999f});
  const sched::Request request({65}, params, 1, /*logprobs=*/false);
  const size_t bound = settings_bytes(asked.stop, 200);
  EXPECT_LE(llama::generation_settings(asked, request).size(), bound);

  TestOptions options;
  options.config.log_bytes_max = 4 * kAnswerCopies * bound;
  TestApi server(options);
  const auto status = [&](const char* choices, const std::string& list) {
    return server
        .post("/completion", R"({"prompt":"A","n_predict":1,"n_cmpl":)" + std::string(choices) +
                                 R"(,"logit_bias":[)" + list + "]}")
        .status;
  };
  EXPECT_EQ(status("1", biases), 200);
  EXPECT_EQ(status("8", ""), 200);
  EXPECT_EQ(status("8", biases), 400);
}

}  // namespace
}  // namespace weir::api
