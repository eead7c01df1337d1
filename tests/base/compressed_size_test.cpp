#include "base/compressed_size.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

// As Python's zlib.compress() has them.
TEST(CompressedSize, IsZlibs) {
  EXPECT_EQ(compressed_size(""), 8u);
  EXPECT_EQ(compressed_size("a"), 9u);
  std::string again;
  for (int i = 0; i < 100; ++i) again += " thank you";
  EXPECT_EQ(compressed_size(again), 27u);
}

}  // namespace
}  // namespace weir
