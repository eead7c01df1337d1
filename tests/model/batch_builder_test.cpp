// A batch that is cut: rows go from the ends of slices, and everything else follows.
#include "model/batch_builder.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace weir::model {
namespace {

TEST(BatchBuilder, CutsTheLastRowsOfSlices) {
  BatchBuilder builder(16, 3);
  const std::array<float, 4> vectors{};
  const auto add = [&](const BatchSlice& slice, std::vector<int32_t> tokens) {
    builder.add_slice(slice);
    builder.add_tokens(tokens);
  };
  add({.drafts = 3, .memory = {}}, {10, 11, 12, 13});
  builder.want(Wanted::kVerify, 0, 4);
  add({.drafts = 2, .memory = {}}, {20, 21, 22});
  builder.want(Wanted::kVerify, 0, 3);
  builder.add_slice({.memory = {}});
  builder.add_vectors({.rows = 1, .vectors = vectors.data()}, std::array{30});
  builder.set_rope_position({300, 300, 300});
  builder.add_token(31);
  builder.set_rope_position({301, 301, 301});
  builder.want_next();
  builder.cut(std::array{1, 2, 0});

  const Batch batch = builder.batch();
  EXPECT_EQ(std::vector(batch.tokens.begin(), batch.tokens.end()),
            (std::vector<int32_t>{10, 11, 12, 20, 30, 31}));
  ASSERT_EQ(batch.slices.size(), 3u);
  EXPECT_EQ(batch.slices[1].row_begin, 3);
  EXPECT_EQ(batch.slices[2].row_begin, 4);
  EXPECT_EQ(batch.slices[0].drafts, 2);
  EXPECT_EQ(batch.slices[1].drafts, 0);
  EXPECT_EQ(batch.wanted[0].kind, Wanted::kVerify);
  EXPECT_EQ(batch.wanted[0].rows, 3);
  EXPECT_EQ(batch.wanted[1].kind, Wanted::kNext);  // No draft is left of it.
  EXPECT_EQ(batch.wanted[1].row_begin, 3);
  EXPECT_EQ(batch.wanted[2].row_begin, 5);
  EXPECT_EQ(batch.vectors[0].row_begin, 4);
  EXPECT_EQ(batch.rope_position(batch.slices[1], 3, 17), (RopePosition{17, 17, 17}));
  EXPECT_EQ(batch.rope_position(batch.slices[2], 4, 17), (RopePosition{300, 300, 300}));
  EXPECT_EQ(batch.rope_position(batch.slices[2], 5, 18), (RopePosition{301, 301, 301}));
}

}  // namespace
}  // namespace weir::model
