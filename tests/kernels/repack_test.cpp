#include "kernels/repack.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/cpu_ops.h"
#include "kernels/quant_weights.h"

namespace weir::kernels {
namespace {

// Every combination that MLX checkpoints may use.
class Repack
    : public testing::TestWithParam<std::tuple<int32_t /*bits*/, int32_t /*group*/, FloatType>> {};

TEST_P(Repack, PlacesEveryNumberWhereOpsSaysAndPadsWithZeros) {
  const auto [bits, group, type] = GetParam();
  const AffineShape shape = {37, 3 * group, group, bits, type};
  const QuantWeights weights(shape, static_cast<uint32_t>(bits * 1000 + group));
  const QuantMatrix packed = weights.packed();
  const int32_t container = bits <= 4 ? 4 : 8;
  ASSERT_EQ(packed.bits, container);
  const int32_t order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  for (int32_t row = 0; row < 48; ++row) {
    for (int32_t c = 0; c < shape.k; ++c) {
      // Position of the element in the permuted order, then in words of 8 or 4 numbers.
      int32_t position = 0;
      while (order[position] != c % 8) ++position;
      position += c / 8 * 8;
      const int32_t per_word = 32 / container;
      const uint8_t* word = packed.words + (row / 16) * 16 * (shape.k * container / 8) +
                            (position / per_word) * 64 + (row % 16) * 4;
      const int32_t in_word = position % per_word;
      const uint32_t found = container == 8 ? word[in_word]
                             : in_word < 4  ? word[in_word] & 15u
                                            : word[in_word - 4] >> 4;
      const uint32_t expected = row < shape.n ? weights.quantum(row, c) : 0;
      ASSERT_EQ(found, expected) << "row " << row << " column " << c;
    }
    for (int32_t g = 0; g < shape.k / group; ++g) {
      const int64_t line = (int64_t{row / 16} * (shape.k / group) + g) * 32 + row % 16;
      const bool real = row < shape.n;
      ASSERT_EQ(read_float(packed.scales, type, line), real ? weights.scale(row, g) : 0.0f);
      ASSERT_EQ(read_float(packed.scales, type, line + 16), real ? weights.bias(row, g) : 0.0f);
    }
  }
}

TEST_P(Repack, TurnsTheNumbersThemselves) {
  const auto [bits, group, type] = GetParam();
  const AffineShape shape = {21, 2 * group, group, bits, type};
  const QuantWeights weights(shape, static_cast<uint32_t>(bits * 10 + group));
  std::vector<float> turned(static_cast<size_t>(shape.n) * static_cast<size_t>(shape.k));
  dequantise_turned(weights.stored(), turned.data());
  for (int32_t row = 0; row < shape.n; ++row)
    for (int32_t c = 0; c < shape.k; ++c) {
      const int32_t g = c / group;
      const float value = std::fma(
          weights.scale(row, g), static_cast<float>(weights.quantum(row, c)), weights.bias(row, g));
      ASSERT_EQ(turned[static_cast<size_t>(c * shape.n + row)], value) << row << ", " << c;
    }
}

TEST_P(Repack, WritesOnlyTheBlocksAskedFor) {
  const auto [bits, group, type] = GetParam();
  const AffineShape shape = {48, group, group, bits, type};
  const QuantWeights weights(shape, 7);
  const auto word_bytes =
      static_cast<size_t>(packed_word_bytes(shape.n, shape.k, container_bits(bits)));
  const auto scale_bytes =
      static_cast<size_t>(packed_scale_bytes(shape.n, shape.k, shape.group, type));
  Aligned<uint8_t> words(word_bytes), scales(scale_bytes);
  std::memset(words.data(), 0xa5, word_bytes);
  std::memset(scales.data(), 0xa5, scale_bytes);
  repack_blocks(weights.stored(), 1, 2, words.data(), scales.data());
  for (size_t i = 0; i < word_bytes; ++i) {
    if (i / (word_bytes / 3) == 1)
      ASSERT_EQ(words[i], weights.packed().words[i]);
    else
      ASSERT_EQ(words[i], 0xa5);
  }
  for (size_t i = 0; i < scale_bytes; ++i) {
    if (i / (scale_bytes / 3) == 1)
      ASSERT_EQ(scales[i], weights.packed().scales[i]);
    else
      ASSERT_EQ(scales[i], 0xa5);
  }
}

TEST_P(Repack, DequantisedRowsAreScaleTimesNumberPlusBias) {
  const auto [bits, group, type] = GetParam();
  const AffineShape shape = {21, 2 * group, group, bits, type};
  const QuantWeights weights(shape, 11);
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    if (!isa_available(isa)) continue;
    std::vector<float> out(static_cast<size_t>(shape.k) + 1, 123.0f);
    for (int32_t row = 0; row < shape.n; ++row) {
      ops_for(isa).dequantise_row(weights.packed(), row, out.data());
      for (int32_t c = 0; c < shape.k; ++c) {
        // In double the expression is exact; the kernel rounds once.
        ASSERT_EQ(out[static_cast<size_t>(c)], static_cast<float>(weights.value(row, c)))
            << isa_name(isa) << " row " << row << " column " << c;
      }
      ASSERT_EQ(out.back(), 123.0f);
    }
  }
}

std::string name_of_format(
    const testing::TestParamInfo<std::tuple<int32_t, int32_t, FloatType>>& info) {
  const char* names[] = {"F32", "F16", "BF16"};
  const auto [bits, group, type] = info.param;
  return std::to_string(bits) + "BitGroup" + std::to_string(group) +
         names[static_cast<size_t>(type)];
}

INSTANTIATE_TEST_SUITE_P(
    AllFormats, Repack,
    testing::Combine(testing::Values(2, 3, 4, 5, 6, 8), testing::Values(32, 64, 128),
                     testing::Values(FloatType::kF32, FloatType::kF16, FloatType::kBF16)),
    name_of_format);

}  // namespace
}  // namespace weir::kernels
