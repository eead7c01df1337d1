// Float8 weights: scalar against a formula in double precision, all other ISAs against scalar, bit
// for bit, whatever the batch and the columns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "kernels/cpu_ops.h"
#include "kernels/quant_weights.h"
#include "kernels/repack.h"
#include "kernels/tables.h"

namespace weir::kernels {
namespace {

constexpr int32_t kRows = 40;
constexpr float kCanary = 123.0f;

Aligned<uint8_t>& scratch() {
  static Aligned<uint8_t> memory(static_cast<size_t>(kScratchBytes));
  return memory;
}

// Random numbers of every kind, with a scale for each scale_rows by scale_columns of them.
struct Layer {
  Layer(int32_t out, int32_t in, int32_t scale_rows, int32_t scale_columns, uint32_t seed)
      : n(out),
        k(in),
        rows_per_scale(scale_rows),
        bytes(static_cast<size_t>(n * k)),
        x(random_floats(static_cast<size_t>(kRows * k), seed)),
        bf16(kRows, k) {
    matrix = {.n = n,
              .k = k,
              .scale_columns = scale_columns,
              .row_scales = scale_rows % kBlockRows != 0 && scale_rows < n};
    std::mt19937 random(seed);
    for (uint8_t& byte : bytes) {
      byte = static_cast<uint8_t>(random());
      if ((byte & 0x7f) == 0x7f) byte = 0x38;  // A NaN.
    }
    const size_t of_row = static_cast<size_t>((k + scale_columns - 1) / scale_columns);
    const std::vector<float> all = random_floats(static_cast<size_t>(n) * of_row, seed + 1);
    for (int32_t row = 0; row < n; ++row) {
      const auto first = static_cast<size_t>(row / scale_rows) * of_row;
      scales.insert(scales.end(), all.begin() + static_cast<int64_t>(first),
                    all.begin() + static_cast<int64_t>(first + of_row));
    }
    pack(of_row);
    ops_for(Isa::kScalar).round_rows(x.data(), k, kRows, k, bf16.rows());
  }

  void pack(size_t of_row) {
    numbers = Aligned<uint8_t>(static_cast<size_t>(packed_word_bytes(matrix)));
    packed_scales = Aligned<float>(static_cast<size_t>(packed_scale_bytes(matrix)) / 4);
    std::memset(numbers.data(), 0x7f, numbers.size());  // What is not written is a NaN.
    std::ranges::fill_n(packed_scales.data(), static_cast<int64_t>(packed_scales.size()), NAN);
    for (int32_t row = 0; row < n; row += kBlockRows) {
      Float8Matrix before = matrix;
      before.n = row;
      pack_float8_block(matrix, bytes.data() + int64_t{row} * k,
                        scales.data() + static_cast<size_t>(row) * of_row,
                        std::min(kBlockRows, n - row), numbers.data() + packed_word_bytes(before),
                        packed_scales.data() + packed_scale_bytes(before) / 4);
    }
    matrix.numbers = numbers.data();
    matrix.scales = packed_scales.data();
  }

  float weight(int32_t row, int32_t column) const {
    const uint8_t byte = bytes[static_cast<size_t>(row * k + column)];
    const int exponent = byte >> 3 & 15, mantissa = byte & 7;
    const float size = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                     : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    const int32_t of_row = static_cast<int32_t>(scales.size()) / n;
    return (byte & 0x80 ? -size : size) *
           scales[static_cast<size_t>(row * of_row + column / matrix.scale_columns)];
  }

  // [rows][n], of which columns [begin, n) are computed and the others stay as they were.
  std::vector<float> run(const Ops& ops, int32_t rows, int32_t begin = 0,
                         const int32_t* index = nullptr) const {
    std::vector<float> y(static_cast<size_t>(rows * n), kCanary);
    ops.gemm_float8_f32(
        matrix, x.data(), k,
        {.index = index, .rows = rows, .begin = begin, .end = n, .y = y.data(), .y_stride = n},
        scratch().data());
    return y;
  }

  int32_t n, k, rows_per_scale;
  std::vector<uint8_t> bytes;
  std::vector<float> scales;  // Of each row, one after another.
  std::vector<float> x;
  Bf16Buffer bf16;
  Aligned<uint8_t> numbers{0};
  Aligned<float> packed_scales{0};
  Float8Matrix matrix;
};

const std::vector<Layer>& layers() {
  static const std::vector<Layer> list = [] {
    std::vector<Layer> all;
    all.emplace_back(37, 320, 128, 128, 3);  // Blocks of 128 by 128, the last ones cut.
    all.emplace_back(300, 288, 128, 128, 5);
    all.emplace_back(21, 96, 1, 96, 7);   // A scale a row.
    all.emplace_back(18, 64, 18, 64, 9);  // One scale.
    all.emplace_back(160, 1056, 160, 1056, 11);
    all.emplace_back(34, 224, 1, 32, 13);  // MXFP8's groups.
    all.emplace_back(9, 576, 8, 192, 15);  // A block's rows have different scales.
    all.emplace_back(16, 32, 16, 32, 17);
    return all;
  }();
  return list;
}

TEST(Float8, ScalarAgreesWithDoublePrecision) {
  for (const Layer& layer : layers()) {
    const std::vector<float> y = layer.run(ops_for(Isa::kScalar), 3);
    for (int32_t m = 0; m < 3; ++m)
      for (int32_t c = 0; c < layer.n; ++c) {
        double expected = 0, magnitude = 0;
        for (int32_t i = 0; i < layer.k; ++i) {
          const double term =
              double{layer.weight(c, i)} * double{layer.x[static_cast<size_t>(m * layer.k + i)]};
          expected += term;
          magnitude += std::abs(term);
        }
        ASSERT_NEAR(y[static_cast<size_t>(m * layer.n + c)], expected, magnitude * 0x1p-19)
            << layer.n << " by " << layer.k << " at " << m << "," << c;
      }
  }
}

TEST(Float8, EveryTableHasScalarsBitsWhateverTheBatch) {
  const auto all = tables();
  std::mt19937 random(3);
  for (const Layer& layer : layers()) {
    const std::vector<float> expected = layer.run(ops_for(Isa::kScalar), kRows);
    for (const auto& [name, ops] : all)
      for (const int32_t rows : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 23, 32, 33, 40})
        for (const bool indexed : {false, true}) {
          std::vector<int32_t> index(static_cast<size_t>(rows));
          for (int32_t m = 0; m < rows; ++m)
            index[static_cast<size_t>(m)] = indexed ? static_cast<int32_t>(random() % kRows) : m;
          const auto blocks = static_cast<uint32_t>(layer.n + 15) / 16;
          const int32_t begin = indexed ? static_cast<int32_t>(random() % blocks) * 16 : 0;
          const std::vector<float> y =
              layer.run(ops, rows, begin, indexed ? index.data() : nullptr);
          for (int32_t m = 0; m < rows; ++m)
            for (int32_t c = 0; c < layer.n; ++c) {
              const float found = y[static_cast<size_t>(m * layer.n + c)];
              const float wanted =
                  c < begin
                      ? kCanary
                      : expected[static_cast<size_t>(index[static_cast<size_t>(m)] * layer.n + c)];
              ASSERT_EQ(std::memcmp(&found, &wanted, 4), 0)
                  << layer.n << " by " << layer.k << ", " << name << ", " << rows << " rows, at "
                  << m << "," << c << ": " << found << " for " << wanted;
            }
        }
  }
}

TEST(Float8, ColumnsAfterTheRangeAreNotWritten) {
  const Layer& layer = layers()[1];
  for (const auto& [name, ops] : tables())
    for (const int32_t rows : {1, 3, 20}) {
      std::vector<float> y(static_cast<size_t>(rows * layer.n), kCanary);
      ops.gemm_float8_f32(
          layer.matrix, layer.x.data(), layer.k,
          {.rows = rows, .begin = 32, .end = 48, .y = y.data(), .y_stride = layer.n},
          scratch().data());
      for (int32_t m = 0; m < rows; ++m)
        for (int32_t c = 0; c < layer.n; ++c)
          ASSERT_EQ(y[static_cast<size_t>(m * layer.n + c)] == kCanary, c < 32 || c >= 48) << name;
    }
}

TEST(Float8, RowsAreWidenedExactly) {
  for (const Layer& layer : layers())
    for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
      if (!isa_available(isa)) continue;
      std::vector<float> row(static_cast<size_t>(layer.k) + 1, kCanary);
      for (int32_t r = 0; r < layer.n; ++r) {
        ops_for(isa).widen_float8_row(layer.matrix, r, row.data());
        for (int32_t i = 0; i < layer.k; ++i)
          ASSERT_EQ(row[static_cast<size_t>(i)], layer.weight(r, i)) << isa_name(isa);
        ASSERT_EQ(row.back(), kCanary);
      }
    }
}

TEST(Float8, ProductsOfPromptsHaveScalarsBits) {
  for (const Layer& layer : layers()) {
    const auto multiply = [&](const Ops& ops) {
      std::vector<float> y(static_cast<size_t>(kRows * layer.n));
      ops.gemm_float8_bf16(layer.matrix, layer.bf16.rows(),
                           {.rows = kRows, .end = layer.n, .y = y.data(), .y_stride = layer.n},
                           scratch().data());
      return y;
    };
    const std::vector<float> expected = multiply(ops_for(Isa::kScalar));
    for (int32_t c = 0; c < layer.n; ++c) {
      double sum = 0, magnitude = 0;
      for (int32_t i = 0; i < layer.k; ++i) {
        const double term = double{layer.weight(c, i)} * double{layer.x[static_cast<size_t>(i)]};
        sum += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(expected[static_cast<size_t>(c)], sum, magnitude * 0x1p-7);
    }
    for (const auto& [name, ops] : tables()) {
      const std::vector<float> found = multiply(ops);
      ASSERT_EQ(std::memcmp(found.data(), expected.data(), 4 * found.size()), 0) << name;
    }
  }
}

}  // namespace
}  // namespace weir::kernels
