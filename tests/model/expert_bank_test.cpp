#include "model/expert_bank.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weir::model {
namespace {

TEST(ExpertBank, RefusesLayersThatGiveATokenDifferentNumbersOfExperts) {
  const card::Checkpoint checkpoint("model.safetensors");
  ExpertBank bank(checkpoint);
  StoredLinear stored;
  stored.linear.n = stored.linear.floats.n = 16;
  stored.linear.k = stored.linear.floats.k = 32;
  stored.piece[0] = {.bytes = 16 * 32 * 4};
  stored.pieces = 1;
  const std::vector<StoredLinear> experts(4, stored);
  ASSERT_TRUE(bank.add_layer(2, {}, experts, experts));
  ASSERT_TRUE(bank.add_layer(2, {}, experts, experts));
  const Result<int32_t> other = bank.add_layer(3, {}, experts, experts);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("in every layer, 2; found 3"), std::string::npos);
}

}  // namespace
}  // namespace weir::model
