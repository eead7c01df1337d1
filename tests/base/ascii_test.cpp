#include "base/ascii.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Ascii, FoldsItsOwnLettersAndNothingElse) {
  for (int i = 0; i < 256; ++i) {
    const char c = static_cast<char>(i);
    const bool upper = i >= 'A' && i <= 'Z';
    EXPECT_EQ(ascii_lower(c), upper ? static_cast<char>(i - 'A' + 'a') : c) << i;
  }
}

TEST(Ascii, ComparesWholesAndBeginnings) {
  EXPECT_TRUE(equals_ignoring_case("ChunkeD", "chunked"));
  EXPECT_FALSE(equals_ignoring_case("chunke", "chunked"));
  EXPECT_FALSE(equals_ignoring_case("chunkedd", "chunked"));
  EXPECT_FALSE(equals_ignoring_case("chunk\x05\x64", "chunked"));
  EXPECT_TRUE(starts_with_ignoring_case("BEARER x", "bearer "));
  EXPECT_TRUE(starts_with_ignoring_case("bearer ", "bearer "));
  EXPECT_FALSE(starts_with_ignoring_case("bearer", "bearer "));
  EXPECT_FALSE(starts_with_ignoring_case("xbearer ", "bearer "));
}

}  // namespace
}  // namespace weir
