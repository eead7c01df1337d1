#include "base/crc32c.h"

#include <array>
#include <cstring>

namespace weir {

namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // Reflected.
constexpr size_t kStride = 8;

// Table i is of a byte with i bytes of zeros after it.
constexpr auto kTables = [] {
  std::array<std::array<uint32_t, 256>, kStride> tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t i = 1; i < kStride; ++i)
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[i - 1][byte];
      tables[i][byte] = (before >> 8) ^ tables[0][before & 0xff];
    }
  return tables;
}();

}  // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
  uint32_t crc = ~before;
  size_t at = 0;
  for (; at + kStride <= bytes.size(); at += kStride) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + at, kStride);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < kStride; ++i) crc ^= kTables[kStride - 1 - i][(word >> (8 * i)) & 0xff];
  }
  for (; at < bytes.size(); ++at)
    crc = (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<uint32_t>(bytes[at])) & 0xff];
  return ~crc;
}

}  // namespace weir
