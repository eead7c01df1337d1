#include "base/byte_size.h"

#include <gtest/gtest.h>

#include <string>

namespace weir {
namespace {

TEST(ByteSize, UnitsCountIn1024s) {
  constexpr int64_t kKilo = 1024;
  EXPECT_EQ(parse_byte_size("0"), 0);
  EXPECT_EQ(parse_byte_size("100000"), 100'000);
  EXPECT_EQ(parse_byte_size("1K"), kKilo);
  EXPECT_EQ(parse_byte_size("512M"), 512 * kKilo * kKilo);
  EXPECT_EQ(parse_byte_size("4G"), 4 * kKilo * kKilo * kKilo);
  EXPECT_EQ(parse_byte_size("2T"), 2 * kKilo * kKilo * kKilo * kKilo);
}

TEST(ByteSize, UnitsAreWrittenInEitherCaseAndWithOrWithoutB) {
  for (const char* unit : {"k", "K", "kB", "KB", "Kb", "kb", "KiB", "kiB"})
    EXPECT_EQ(parse_byte_size(std::string("3") + unit), 3 * 1024) << unit;
  for (const char* unit : {"g", "G", "GB", "GiB"})
    EXPECT_EQ(parse_byte_size(std::string("1") + unit), int64_t{1} << 30) << unit;
}

TEST(ByteSize, PartsOfAUnitAreBytesWithoutTheRest) {
  EXPECT_EQ(parse_byte_size("1.5G"), int64_t{3} << 29);
  EXPECT_EQ(parse_byte_size("0.5K"), 512);
  EXPECT_EQ(parse_byte_size("0.3"), 0);
  EXPECT_EQ(parse_byte_size("1.9999"), 1);
  EXPECT_EQ(parse_byte_size("1e3"), 1000);
}

TEST(ByteSize, ItsLargestIsTenToTheEighteenth) {
  EXPECT_EQ(parse_byte_size("1e18"), 1'000'000'000'000'000'000);
  EXPECT_EQ(parse_byte_size("800000T"), 800'000 * (int64_t{1} << 40));
  EXPECT_FALSE(parse_byte_size("1000000T"));
  EXPECT_FALSE(parse_byte_size("1.0000000001e18"));
  EXPECT_FALSE(parse_byte_size("1e400"));
}

TEST(ByteSize, AnythingElseIsRefused) {
  for (const char* text : {"",     " ",   "G",   "-1",       "-1G",  "+1",    "1 G",   " 1",
                           "1 ",   "1X",  "1B",  "1KK",      "1KBB", "1Ki",   "1GiBs", "1GIB",
                           "0x10", "inf", "nan", "infinity", "1,5G", "1.5.5", "four"})
    EXPECT_FALSE(parse_byte_size(text)) << "'" << text << "'";
}

}  // namespace
}  // namespace weir
