// What a bank of streamed experts refuses; what it computes is in streaming_test.cpp.
#include "model/streamed_bank.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::model {
namespace {

class StreamedBankTest : public testing::Test {
 protected:
  // A layer of ungated experts, whose matrices are float32 but for expert `other`'s up_proj.
  Result<ExpertBank::Layer> add(int32_t experts, int32_t top_k, int32_t other = -1) {
    std::vector<FfnWeights> networks(static_cast<size_t>(experts));
    for (const char* part : {".up_proj", ".down_proj"})
      for (int32_t e = 0; e < experts; ++e) {
        StoredMatrix m;
        m.name = "experts." + std::to_string(e) + part;
        m.linear.n = m.linear.floats.n = 16;
        m.linear.k = m.linear.floats.k = 32;
        m.row_step = 32;
        m.pieces = 1;
        if (e == other && part == std::string_view(".up_proj")) m.type = DType::kBF16;
        m.piece[0] = {.bytes = static_cast<uint64_t>(m.numbers() * dtype_bytes(m.type))};
        const Result<Linear> placed = bank_.placer().place(m);
        EXPECT_TRUE(placed) << placed.error().message;
        FfnWeights& network = networks[static_cast<size_t>(e)];
        network.spec.gated = false;
        (network.up.n == 0 ? network.up : network.down) = *placed;
      }
    return bank_.add_layer(top_k, networks);
  }
  std::string error_of(int32_t experts, int32_t top_k, int32_t other = -1) {
    const Result<ExpertBank::Layer> added = add(experts, top_k, other);
    return added ? "" : added.error().message;
  }

  const card::Checkpoint checkpoint_{"model.safetensors"};
  StreamedBank bank_{checkpoint_};
};

TEST_F(StreamedBankTest, NumbersItsLayersAndKnowsTheirForm) {
  for (int32_t number = 0; number < 2; ++number) {
    const Result<ExpertBank::Layer> added = add(4, 2);
    ASSERT_TRUE(added) << added.error().message;
    EXPECT_EQ(added->number, number);
    ASSERT_EQ(added->experts.size(), 4u);
    EXPECT_EQ(added->experts[3].weight_bytes(), 2 * 16 * 32 * 4);
  }
  EXPECT_EQ(bank_.catalogue().layers(), 2);
  EXPECT_EQ(bank_.catalogue().experts(), 4);
  EXPECT_EQ(bank_.catalogue().layer(1).ranges, (std::array<int32_t, ssd::kParts>{1, 1}));
}

TEST_F(StreamedBankTest, RefusesLayersThatGiveATokenDifferentNumbersOfExperts) {
  ASSERT_EQ(error_of(4, 2), "");
  ASSERT_EQ(error_of(4, 2), "");
  EXPECT_NE(error_of(4, 3).find("in every layer, 2; found 3"), std::string::npos);
}

TEST_F(StreamedBankTest, RefusesLayersOfDifferentNumbersOfExperts) {
  ASSERT_EQ(error_of(4, 2), "");
  EXPECT_NE(error_of(5, 2).find("in every layer, 4; found 5"), std::string::npos);
}

TEST_F(StreamedBankTest, RefusesExpertsOfALayerThatAreStoredDifferently) {
  EXPECT_EQ(error_of(4, 2, /*other=*/3),
            "--stream-experts: tensor 'experts.3.up_proj': expected F32 [16, 32], as expert 0 of "
            "the layer is stored; found BF16");
}

}  // namespace
}  // namespace weir::model
