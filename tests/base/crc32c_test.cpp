#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace weir {
namespace {

uint32_t of(std::string_view text) { return crc32c(std::as_bytes(std::span(text))); }

// RFC 3720, B.4.
TEST(Crc32c, GivesTheStandardsValues) {
  EXPECT_EQ(of(""), 0u);
  EXPECT_EQ(of("123456789"), 0xe3069283u);
  std::vector<std::byte> bytes(32);
  EXPECT_EQ(crc32c(bytes), 0x8a9136aau);
  for (std::byte& byte : bytes) byte = std::byte{0xff};
  EXPECT_EQ(crc32c(bytes), 0x62a8ab43u);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(bytes), 0x46dd794eu);
}

TEST(Crc32c, GoesOnWhereItLeftOff) {
  std::vector<std::byte> bytes(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 9);
  for (const size_t cut : {0u, 1u, 7u, 8u, 13u, 999u, 1000u})
    EXPECT_EQ(crc32c(std::span(bytes).subspan(cut), crc32c(std::span(bytes).first(cut))),
              crc32c(bytes));
}

}  // namespace
}  // namespace weir
