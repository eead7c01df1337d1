// Random weights in each form that a container holds: rows of numbers, packed by pack_block, and
// readable one element at a time by a formula of their own.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "kernels/quant_layout.h"
#include "kernels/quant_weights.h"
#include "kernels/row_numbers.h"

namespace weir::kernels {

struct Form {
  const char* name;
  QuantShape shape;
};

// The forms of well-known formats, and those that the parts of these allow; n and k reach every
// path: n no multiple of 16, k of part of a run of kSuperGroup numbers.
inline std::vector<Form> forms() {
  using enum ScaleForm;
  const auto zeros = [](int32_t n, int32_t k, int32_t group, int32_t bits, FloatType type) {
    return QuantShape{
        .n = n, .k = k, .group = group, .bits = bits, .scales = kZeros, .scale_type = type};
  };
  const auto pairs = [](int32_t n, int32_t k, int32_t group, int32_t bits, Grid grid,
                        FloatType type) {
    return QuantShape{
        .n = n, .k = k, .group = group, .bits = bits, .grid = grid, .scale_type = type};
  };
  const auto scales = [](int32_t n, int32_t k, int32_t group, int32_t bits, Grid grid,
                         FloatType type, int32_t offset) {
    return QuantShape{.n = n,
                      .k = k,
                      .group = group,
                      .bits = bits,
                      .grid = grid,
                      .scales = kScales,
                      .scale_type = type,
                      .offset = offset};
  };
  const auto levels = [](int32_t n, int32_t k, int32_t group, int32_t bits, Grid grid,
                         ByteScale scale, bool mins, int32_t offset) {
    return QuantShape{.n = n,
                      .k = k,
                      .group = group,
                      .bits = bits,
                      .grid = grid,
                      .scales = kTwoLevel,
                      .byte_scale = scale,
                      .mins = mins,
                      .offset = offset};
  };
  constexpr Grid kUniform = Grid::kUniform;
  constexpr ByteScale kUnsigned = ByteScale::kUnsigned, kSigned = ByteScale::kSigned;
  QuantShape table_and_zeros = zeros(23, 128, 128, 4, FloatType::kF16);
  table_and_zeros.grid = Grid::kIq4;
  return {{"GPTQ 4", zeros(40, 512, 128, 4, FloatType::kF16)},
          {"AWQ", zeros(70, 96, 32, 4, FloatType::kBF16)},
          {"GPTQ 8", zeros(33, 192, 64, 8, FloatType::kF16)},
          {"GPTQ 3", zeros(16, 320, 64, 3, FloatType::kF16)},
          {"GPTQ 2", zeros(37, 160, 32, 2, FloatType::kF32)},
          {"int8 by 16", zeros(20, 96, 16, 8, FloatType::kF32)},
          {"Q4_K", levels(61, 544, 32, 4, kUniform, kUnsigned, true, 0)},
          {"Q5_K", levels(48, 1536, 32, 5, kUniform, kUnsigned, true, 0)},
          {"Q6_K", levels(35, 1056, 16, 6, kUniform, kSigned, false, 32)},
          {"Q3_K", levels(64, 288, 16, 3, kUniform, kSigned, false, 4)},
          {"Q2_K", levels(17, 768, 16, 2, kUniform, kUnsigned, true, 0)},
          {"IQ4_XS", levels(50, 256, 32, 4, Grid::kIq4, kSigned, false, 0)},
          {"IQ4_NL", scales(21, 96, 32, 4, Grid::kIq4, FloatType::kF16, 0)},
          {"Q4_0", scales(45, 544, 32, 4, kUniform, FloatType::kF16, 8)},
          {"Q5_0", scales(18, 160, 32, 5, kUniform, FloatType::kF16, 16)},
          {"Q8_0", scales(52, 192, 32, 8, kUniform, FloatType::kF16, 128)},
          {"int8 by row", scales(40, 256, 128, 8, kUniform, FloatType::kF32, 128)},
          {"ternary", scales(33, 384, 64, 2, kUniform, FloatType::kBF16, 1)},
          {"a table and pairs", pairs(21, 96, 32, 4, Grid::kIq4, FloatType::kF16)},
          {"MXFP4", levels(90, 352, 32, 4, Grid::kE2m1, ByteScale::kE8m0, false, 0)},
          {"NVFP4", levels(39, 320, 16, 4, Grid::kE2m1, ByteScale::kE4m3, false, 0)},
          {"Q5_1", pairs(44, 128, 32, 5, kUniform, FloatType::kF16)},
          {"6 bits by 64", pairs(16, 64, 64, 6, kUniform, FloatType::kBF16)},
          {"4 bits by 16", pairs(34, 224, 16, 4, kUniform, FloatType::kF32)},
          {"a table and zeros", table_and_zeros}};
}

class FormWeights {
 public:
  FormWeights(const QuantShape& shape, uint32_t seed)
      : shape_(shape),
        matrix_(matrix_of(shape)),
        words_(static_cast<size_t>(packed_word_bytes(matrix_))),
        scales_(static_cast<size_t>(packed_scale_bytes(matrix_))) {
    std::mt19937 random(seed);
    std::memset(words_.data(), 0xa5, words_.size());
    std::memset(scales_.data(), 0xa5, scales_.size());
    for (int32_t row = 0; row < shape.n; ++row) rows_.emplace_back(shape).fill(random);
    std::vector<RowNumbers> numbers;
    for (Row& row : rows_) numbers.push_back(row.numbers());
    const int64_t words = block_word_bytes(matrix_), scales = block_scale_bytes(matrix_);
    for (int32_t row = 0; row < shape.n; row += kBlockRows)
      pack_block(shape, numbers.data() + row, std::min(kBlockRows, shape.n - row),
                 words_.data() + row / kBlockRows * words,
                 scales_.data() + row / kBlockRows * scales);
    matrix_.words = words_.data();
    matrix_.scales = scales_.data();
  }

  const QuantMatrix& packed() const { return matrix_; }

  // What the number at (row, column) is multiplied by, and what is added; exact in double.
  double scale(int32_t row, int32_t column) const {
    const Row& r = rows_[static_cast<size_t>(row)];
    const auto g = static_cast<size_t>(column / shape_.group);
    if (shape_.scales != ScaleForm::kTwoLevel) return double{r.scales[g]};
    // A float, as kernels have it.
    return double{r.d[static_cast<size_t>(column / kSuperGroup)] * byte_scale(r.group_scales[g])};
  }
  double bias(int32_t row, int32_t column) const {
    const Row& r = rows_[static_cast<size_t>(row)];
    const auto g = static_cast<size_t>(column / shape_.group);
    if (shape_.scales == ScaleForm::kPairs) return double{r.biases[g]};
    if (shape_.scales == ScaleForm::kZeros) return -scale(row, column) * r.zeros[g];
    if (!shape_.mins) return -scale(row, column) * shape_.offset;
    return -double{r.dmin[static_cast<size_t>(column / kSuperGroup)]} * r.group_mins[g];
  }
  double value(int32_t row, int32_t column) const {
    const int32_t code = rows_[static_cast<size_t>(row)].codes[static_cast<size_t>(column)];
    const double number = shape_.grid == Grid::kIq4    ? kIq4Values[code]
                          : shape_.grid == Grid::kE2m1 ? kE2m1Values[code]
                                                       : code;
    return scale(row, column) * number + bias(row, column);
  }
  // At least the magnitude of all that a weight of its group can be, and of what it is made of.
  double magnitude(int32_t row, int32_t column) const {
    const double largest = shape_.grid == Grid::kUniform ? 1 << shape_.bits : 256;
    return std::abs(scale(row, column)) * (largest + std::abs(shape_.offset)) +
           std::abs(bias(row, column));
  }

 private:
  struct Row {
    explicit Row(const QuantShape& s)
        : shape(s),
          codes(static_cast<size_t>(s.k)),
          zeros(static_cast<size_t>(s.k / s.group)),
          group_scales(zeros.size()),
          group_mins(zeros.size()),
          scales(zeros.size()),
          biases(zeros.size()),
          d(static_cast<size_t>((s.k + kSuperGroup - 1) / kSuperGroup)),
          dmin(d.size()),
          stored_scales(4 * zeros.size()),
          stored_biases(4 * zeros.size()) {}

    void fill(std::mt19937& random) {
      std::normal_distribution<float> normal(0.0f, 0.02f);
      const auto stored = [&](float value) {
        if (shape.scale_type == FloatType::kF16) return half_to_float(float_to_half(value));
        if (shape.scale_type == FloatType::kBF16) return bf16_to_float(float_to_bf16(value));
        return half_to_float(float_to_half(value));  // So that products are exact.
      };
      for (uint8_t& code : codes) code = static_cast<uint8_t>(random() % (1u << shape.bits));
      for (uint8_t& zero : zeros) zero = static_cast<uint8_t>(random() % (1u << shape.bits));
      for (uint8_t& scale : group_scales) {
        if (shape.byte_scale == ByteScale::kE8m0)
          scale = static_cast<uint8_t>(115 + random() % 16);
        else if (shape.byte_scale == ByteScale::kE4m3)
          scale = static_cast<uint8_t>(random() % 127);
        else
          scale = static_cast<uint8_t>(random());
      }
      for (uint8_t& min : group_mins) min = static_cast<uint8_t>(random());
      for (std::vector<float>* floats : {&scales, &biases, &d, &dmin})
        for (float& value : *floats) value = random() % 16 == 0 ? 0 : stored(normal(random));
      // With e4m3 the product of a group's scale and `d` need not be exact; powers of two make it.
      if (shape.byte_scale == ByteScale::kE4m3) std::ranges::fill(d, 0x1p-9f);
    }
    RowNumbers numbers() {
      for (size_t g = 0; g < scales.size(); ++g) {
        put_number(shape.scale_type, scales[g], stored_scales.data(), static_cast<int64_t>(g));
        put_number(shape.scale_type, biases[g], stored_biases.data(), static_cast<int64_t>(g));
      }
      return {.codes = codes.data(),
              .scales = stored_scales.data(),
              .biases = stored_biases.data(),
              .zeros = zeros.data(),
              .group_scales = group_scales.data(),
              .group_mins = group_mins.data(),
              .d = d.data(),
              .dmin = dmin.data()};
    }

    QuantShape shape;
    std::vector<uint8_t> codes, zeros, group_scales, group_mins;
    std::vector<float> scales, biases, d, dmin;
    std::vector<uint8_t> stored_scales, stored_biases;  // Of scale_type.
  };

  float byte_scale(uint8_t byte) const {
    switch (shape_.byte_scale) {
      case ByteScale::kUnsigned:
        return byte;
      case ByteScale::kSigned:
        return static_cast<int8_t>(byte);
      case ByteScale::kE8m0:
        return std::ldexp(1.0f, byte - 127);
      case ByteScale::kE4m3:
        break;
    }
    const int exponent = byte >> 3 & 15, mantissa = byte & 7;
    const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                     : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    return byte & 0x80 ? -size : size;
  }

  QuantShape shape_;
  QuantMatrix matrix_;
  std::vector<Row> rows_;
  Aligned<uint8_t> words_, scales_;
};

}  // namespace weir::kernels
