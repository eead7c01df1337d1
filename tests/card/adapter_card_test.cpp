// What the files of an adapter say, and what of them is refused by name.
#include "card/adapter_card.h"

#include <gtest/gtest.h>

#include "card/adapter_files.h"

namespace weir::card {
namespace {


const std::string kModule = "model.layers.1.mlp.up_proj";

AdapterFiles one_module(int32_t rank = 4) { return AdapterFiles().low_rank(kModule, 6, 8, rank); }

double scale_of(const std::string& config, int32_t rank) {
  const std::string bytes = one_module(rank).bytes();
  const auto card = read_adapter(config, bytes);
  EXPECT_TRUE(card) << card.error().message;
  return card ? card->parts().at(0).scale : 0;
}

std::string error_of(const std::string& config, const AdapterFiles& files) {
  const std::string bytes = files.bytes();
  const auto card = read_adapter(config, bytes);
  return card ? "" : card.error().message;
}

TEST(AdapterCard, TheScaleIsAlphaOverTheRankOfA) {
  EXPECT_EQ(scale_of(AdapterFiles::config(64, 16), 4), 4);  // Whatever `r` says.
  EXPECT_EQ(scale_of(AdapterFiles::config(4, 16, R"(,"use_rslora":true)"), 4), 8);
  EXPECT_EQ(scale_of(AdapterFiles::config(4, 16, R"(,"alpha_pattern":{"up_proj":2})"), 4), 0.5);
  EXPECT_EQ(scale_of(AdapterFiles::config(4, 16, R"(,"alpha_pattern":{"p_proj":2})"), 4), 4);
  EXPECT_EQ(scale_of(AdapterFiles::config(4, 16, R"(,"alpha_pattern":{"layers\\.1\\..*":2})"), 4),
            0.5);
}

TEST(AdapterCard, MlxLmHasItsMatricesTurnedAndAScaleOfItsOwn) {
  AdapterFiles files;
  files.tensor(kModule + ".lora_a", {8, 4}, 1).tensor(kModule + ".lora_b", {4, 6}, 1);
  const std::string bytes = files.bytes();
  const auto card = read_adapter(R"({"lora_parameters":{"rank":4,"scale":10.0}})", bytes);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->layout(), AdapterCard::Layout::kMlx);
  ASSERT_EQ(card->parts().size(), 1u);
  const AdapterPart& part = card->parts()[0];
  EXPECT_EQ(part.module, kModule);
  EXPECT_TRUE(part.a_turned && part.b_turned);
  EXPECT_EQ(part.rank, 4);
  EXPECT_EQ(part.scale, 10);
}

TEST(AdapterCard, RefusesByNameWhatIsNotComputed) {
  const auto expect = [](std::string_view more, std::string_view text) {
    const std::string error = error_of(AdapterFiles::config(4, 8, more), one_module());
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  EXPECT_EQ(error_of(AdapterFiles::config(4, 8), one_module()), "");
  expect(R"(,"target_parameters":["mlp.experts.gate_up_proj"])", "target_parameters");
  expect(R"(,"use_qalora":true)", "use_qalora");
  expect(R"(,"alora_invocation_tokens":[1,2])", "alora_invocation_tokens");
  expect(R"(,"layer_replication":[[0,4],[2,5]])", "layer_replication");
  expect(R"(,"trainable_token_indices":[3])", "trainable_token_indices");
  expect(R"(,"init_lora_weights":"pissa_niter_4")", "pissa");
  expect(R"(,"alpha_pattern":{"(":1})", "alpha_pattern");
  EXPECT_NE(error_of(R"({"peft_type":"IA3"})", one_module()).find("IA3"), std::string::npos);
  // Said, and not so.
  EXPECT_EQ(error_of(AdapterFiles::config(4, 8, R"(,"use_qalora":false,"target_parameters":null,)"
                                                R"("layer_replication":[])"),
                     one_module()),
            "");
}

TEST(AdapterCard, RefusesTensorsThatDoNotFitEachOther) {
  const std::string config = AdapterFiles::config(4, 8);
  const std::string a = "base_model.model." + kModule + ".lora_A.weight";
  const std::string b = "base_model.model." + kModule + ".lora_B.weight";
  const auto expect = [&](const AdapterFiles& files, std::string_view text) {
    const std::string error = error_of(config, files);
    EXPECT_NE(error.find(text), std::string::npos) << error;
  };
  expect(AdapterFiles().tensor(a, {4, 8}, 1), "found one of them");
  expect(AdapterFiles().tensor(a, {4, 8}, 1).tensor(b, {6, 5}, 1), "one rank");
  expect(AdapterFiles().tensor(a, {4, 8, 1}, 1).tensor(b, {6, 4}, 1), "2 dimensions");
  expect(AdapterFiles().tensor(a, {513, 2}, 1).tensor(b, {2, 513}, 1), "from 1 to 512");
  expect(AdapterFiles().tensor("base_model.model.x.lora_C.weird", {2}, 1), "lora_C");
  expect(one_module().tensor("base_model.model." + kModule + ".weight", {6, 8}, 1), "found both");
  expect(AdapterFiles().tensor("base_model.model.x.lora_magnitude_vector", {2}, 1), "beside");
}

TEST(AdapterCard, WholeWeightsAndBiasesNeedNoLowRank) {
  AdapterFiles files;
  files.tensor("base_model.model.lm_head.weight", {16, 8}, 1);
  files.tensor("base_model.model." + kModule + ".base_layer.bias", {6}, 1);
  const std::string bytes = files.bytes();
  const auto card = read_adapter(AdapterFiles::config(4, 8), bytes);
  ASSERT_TRUE(card) << card.error().message;
  EXPECT_EQ(card->rank(), 0);
  ASSERT_EQ(card->parts().size(), 2u);
  EXPECT_NE(card->parts()[0].whole, nullptr);
  EXPECT_NE(card->parts()[1].whole_bias, nullptr);
}

}  // namespace
}  // namespace weir::card
