// What a request allows or forbids by name.
#include "sample/token_bounds.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weir::sample {
namespace {

TEST(TokenBounds, LeavesOnlyTheAllowed) {
  const TokenBounds bounds({130, 3, 3, 64}, {});
  std::vector<uint64_t> mask(4, ~uint64_t{0});
  mask[1] &= ~uint64_t{1};  // A grammar has taken 64.
  bounds.intersect(mask);
  EXPECT_EQ(mask, (std::vector<uint64_t>{uint64_t{1} << 3, 0, uint64_t{1} << 2, 0}));
}

TEST(TokenBounds, BansTheLastTokenOfASequence) {
  const TokenBounds bounds({}, {{5}, {1, 2}, {1, 1, 3}, {99}});
  EXPECT_FALSE(bounds.has_allowed());
  EXPECT_EQ(bounds.past_max(), 2u);
  const auto banned = [&](std::vector<int32_t> past) {
    std::vector<float> logits(8, 0.0f);
    bounds.ban(logits, past);
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < 8; ++i)
      if (std::isinf(logits[static_cast<size_t>(i)])) tokens.push_back(i);
    return tokens;
  };
  EXPECT_EQ(banned({}), (std::vector<int32_t>{5}));
  EXPECT_EQ(banned({1}), (std::vector<int32_t>{2, 5}));
  EXPECT_EQ(banned({2, 1}), (std::vector<int32_t>{2, 5}));
  EXPECT_EQ(banned({1, 1}), (std::vector<int32_t>{2, 3, 5}));
}

}  // namespace
}  // namespace weir::sample
