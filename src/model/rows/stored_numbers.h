// Numbers in tensors that need not be aligned: words, floats, and streams of a few bits each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"

namespace weir::model {

inline uint32_t load_u32(const std::byte* data, int64_t i) {
  uint32_t value;
  std::memcpy(&value, data + i * 4, 4);
  return value;
}

inline uint8_t load_u8(const std::byte* data, int64_t i) { return static_cast<uint8_t>(data[i]); }

inline float load_float(DType type, const std::byte* data, int64_t i) {
  if (type == DType::kF32) {
    float value;
    std::memcpy(&value, data + i * 4, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, data + i * 2, 2);
  return type == DType::kF16 ? half_to_float(bits) : bf16_to_float(bits);
}

// How numbers of `bits` bits, at most 8, lie in 32-bit words: one after another without gaps, or
// as many to a word as fit, which differs for 3, 5, 6 and 7 bits.
struct BitStream {
  int32_t bits = 0;
  bool gaps = false;

  int64_t words(int64_t numbers) const {
    const int64_t in_word = 32 / bits;
    return gaps ? (numbers + in_word - 1) / in_word : (numbers * bits + 31) / 32;
  }
  // Number i of a stream whose words are `step` words apart.
  uint8_t at(const std::byte* data, int64_t i, int64_t step = 1) const {
    const int64_t bit = gaps ? i / (32 / bits) * 32 + i % (32 / bits) * bits : i * bits;
    const int64_t word = bit / 32;
    const auto shift = static_cast<int32_t>(bit % 32);
    uint64_t both = load_u32(data, word * step);
    if (shift + bits > 32) both |= uint64_t{load_u32(data, (word + 1) * step)} << 32;
    return static_cast<uint8_t>(both >> shift & ((1u << bits) - 1));
  }
};

}  // namespace weir::model
