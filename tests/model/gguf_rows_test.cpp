// Rows of blocks against a reading of one number at a time.
#include "model/rows/gguf_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "kernels/row_numbers.h"

namespace weir::model {
namespace {

using Type = card::BlockFormat::Type;

float half(const uint8_t* p) { return half_to_float(static_cast<uint16_t>(p[0] | p[1] << 8)); }

constexpr float kIq4[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr float kE2m1[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0., -0.5f, -1, -1.5f, -2, -3, -4, -6};

int nibble(const uint8_t* p, int i, int half_block) {
  return i < half_block ? p[i] & 15 : p[i - half_block] >> 4;
}

// Scale and min j of twelve bytes.
std::pair<int, int> six_bits(const uint8_t* b, int j) {
  if (j < 4) return {b[j] & 63, b[j + 4] & 63};
  return {(b[j + 4] & 15) | (b[j - 4] >> 6) << 4, b[j + 4] >> 4 | (b[j] >> 6) << 4};
}

int two_bits(const uint8_t* p, int i) { return p[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3; }

float q3_k(const uint8_t* p, int i) {
  const int high = p[i % 32] >> (i / 32) & 1;
  const int q = two_bits(p + 32, i) - (high ? 0 : 4);
  const uint8_t* s = p + 96;
  const int j = i / 16;
  const int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
  const int scale = (low | (s[8 + j % 4] >> (2 * (j / 4)) & 3) << 4) - 32;
  return half(p + 108) * static_cast<float>(scale) * static_cast<float>(q);
}

float q45_k(const uint8_t* p, int i, bool five) {
  const auto [scale, min] = six_bits(p + 4, i / 32);
  const uint8_t* low = p + (five ? 48 : 16) + i / 64 * 32;
  int q = i % 64 < 32 ? low[i % 32] & 15 : low[i % 32] >> 4;
  if (five) q |= (p[16 + i % 32] >> (i / 32) & 1) << 4;
  return half(p) * static_cast<float>(scale) * static_cast<float>(q) -
         half(p + 2) * static_cast<float>(min);
}

float q6_k(const uint8_t* p, int i) {
  const int part = i % 128;
  const uint8_t* low = p + i / 128 * 64 + part % 64;
  const int q = (part < 64 ? *low & 15 : *low >> 4) |
                (p[128 + i / 128 * 32 + part % 32] >> (part / 32 * 2) & 3) << 4;
  return half(p + 208) * static_cast<float>(static_cast<int8_t>(p[192 + i / 16])) *
         static_cast<float>(q - 32);
}

float iq4_xs(const uint8_t* p, int i) {
  const int j = i / 32;
  const int scale =
      ((p[4 + j / 2] >> (4 * (j % 2)) & 15) | ((p[2] | p[3] << 8) >> (2 * j) & 3) << 4) - 32;
  return half(p) * static_cast<float>(scale) * kIq4[nibble(p + 8 + 16 * j, i % 32, 16)];
}

// Number i of a block, in the order in which exact arithmetic multiplies.
float value(Type type, const uint8_t* p, int i) {
  const auto fifth = [&](const uint8_t* bits) { return (bits[i / 8] >> (i % 8) & 1) << 4; };
  switch (type) {
    case Type::kQ4_0:
      return half(p) * static_cast<float>(nibble(p + 2, i, 16) - 8);
    case Type::kQ4_1:
      return half(p) * static_cast<float>(nibble(p + 4, i, 16)) + half(p + 2);
    case Type::kQ5_0:
      return half(p) * static_cast<float>((nibble(p + 6, i, 16) | fifth(p + 2)) - 16);
    case Type::kQ5_1:
      return half(p) * static_cast<float>(nibble(p + 8, i, 16) | fifth(p + 4)) + half(p + 2);
    case Type::kQ8_0:
      return half(p) * static_cast<float>(static_cast<int8_t>(p[2 + i]));
    case Type::kQ2_K:
      return half(p + 80) * static_cast<float>(p[i / 16] & 15) *
                 static_cast<float>(two_bits(p + 16, i)) -
             half(p + 82) * static_cast<float>(p[i / 16] >> 4);
    case Type::kQ3_K:
      return q3_k(p, i);
    case Type::kQ4_K:
      return q45_k(p, i, false);
    case Type::kQ5_K:
      return q45_k(p, i, true);
    case Type::kQ6_K:
      return q6_k(p, i);
    case Type::kIq4Nl:
      return half(p) * kIq4[nibble(p + 2, i, 16)];
    case Type::kIq4Xs:
      return iq4_xs(p, i);
    case Type::kMxfp4:
      return std::ldexp(kE2m1[nibble(p + 1, i, 16)], p[0] - 127);
    case Type::kNvfp4:
      return kernels::e4m3_to_float(p[i / 16]) * kE2m1[nibble(p + 4 + 8 * (i / 16), i % 16, 8)];
  }
  return 0;
}

// Random bytes, but for the float16 numbers and bytes of scales that would be huge or no numbers.
std::vector<uint8_t> random_blocks(const card::BlockFormat& format, int blocks,
                                   std::mt19937& random) {
  std::vector<uint8_t> bytes(static_cast<size_t>(blocks * format.bytes));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  const auto put = [&](uint8_t* p) {
    const uint16_t bits = float_to_half(static_cast<float>(random() % 2001) / 1000 - 1);
    std::memcpy(p, &bits, 2);
  };
  for (int b = 0; b < blocks; ++b) {
    uint8_t* const p = bytes.data() + b * format.bytes;
    switch (format.type) {
      case Type::kMxfp4:
        p[0] = static_cast<uint8_t>(120 + random() % 12);
        break;
      case Type::kNvfp4:
        for (int j = 0; j < 4; ++j) p[j] &= 0x77;
        break;
      case Type::kQ2_K:
        put(p + 80), put(p + 82);
        break;
      case Type::kQ3_K:
        put(p + 108);
        break;
      case Type::kQ6_K:
        put(p + 208);
        break;
      case Type::kQ4_1:
      case Type::kQ5_1:
      case Type::kQ4_K:
      case Type::kQ5_K:
        put(p), put(p + 2);
        break;
      default:
        put(p);
    }
  }
  return bytes;
}

TEST(GgufRows, AreWhatOneNumberAfterTheOtherGives) {
  std::mt19937 random(7);
  int formats = 0;
  for (uint32_t id = 0; id < 64; ++id) {
    const auto type = card::gguf_tensor_type(id);
    if (!type || type->blocks == nullptr) continue;
    ++formats;
    const card::BlockFormat& format = *type->blocks;
    const int32_t k = 512, rows = 5, blocks = k / format.numbers;
    const std::vector<uint8_t> bytes = random_blocks(format, rows * blocks, random);
    const bool scaled = format.type == Type::kNvfp4;
    const float factor = 0.25f;
    const GgufRows source(format, rows, k, scaled);
    RowSource::Bases bases{};
    bases[GgufRows::kRows] = reinterpret_cast<const std::byte*>(bytes.data());
    bases[GgufRows::kScale] = reinterpret_cast<const std::byte*>(&factor);
    kernels::RowBuffer buffer(*source.shape(), 3);
    source.rows(bases, 1, 3, buffer.rows());
    for (int32_t row = 0; row < 3; ++row) {
      std::vector<float> found(static_cast<size_t>(k));
      kernels::dequantise_row(*source.shape(), buffer.row(row), found.data());
      for (int32_t i = 0; i < k; ++i) {
        const uint8_t* block =
            bytes.data() + ((row + 1) * blocks + i / format.numbers) * format.bytes;
        const float expected =
            value(format.type, block, i % format.numbers) * (scaled ? factor : 1);
        // A fused multiply-add may differ in the last bit from two roundings.
        ASSERT_NEAR(found[static_cast<size_t>(i)], expected, 1e-6f * (1 + std::abs(expected)))
            << format.name << " number " << i;
      }
    }
  }
  EXPECT_EQ(formats, 14);
}

}  // namespace
}  // namespace weir::model
