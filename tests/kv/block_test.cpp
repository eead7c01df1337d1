#include "kv/block.h"

#include <gtest/gtest.h>

namespace weir::kv {
namespace {

TEST(Block, TokensReachIntoAsManyBlocksAsCountingOneByOneGives) {
  int32_t blocks = 0;
  EXPECT_EQ(blocks_for(0), 0);
  for (int32_t tokens = 1; tokens <= 40 * kPageTokens; ++tokens) {
    if ((tokens - 1) % kPageTokens == 0) ++blocks;  // The first token of a block.
    ASSERT_EQ(blocks_for(tokens), blocks) << tokens;
  }
}

TEST(Block, TheLargestNumberOfTokensDoesNotOverflow) {
  const int64_t exact = (int64_t{INT32_MAX} + kPageTokens - 1) / kPageTokens;
  EXPECT_EQ(blocks_for(INT32_MAX), exact);
  EXPECT_EQ(blocks_for(INT32_MAX / kPageTokens * kPageTokens), INT32_MAX / kPageTokens);
}

}  // namespace
}  // namespace weir::kv
