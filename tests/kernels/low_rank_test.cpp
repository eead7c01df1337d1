// add_low_rank: the outer half of a low-rank product, on every ISA against what ops.h says, bit for
// bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "base/huge_pages.h"
#include "kernels/cpu_ops.h"
#include "kernels/isas.h"

namespace weir::kernels {
namespace {

struct Factors {
  Factors(int32_t n, int32_t rank, FloatType type, uint32_t seed)
      : matrix{.n = n, .rank = rank, .type = type}, values(static_cast<size_t>(n * rank)) {
    std::mt19937 random(seed);
    std::normal_distribution<float> number(0, 1);
    for (float& value : values) {
      value = number(random);
      if (type == FloatType::kBF16) value = bf16_to_float(float_to_bf16(value));
    }
    const int32_t blocks = (n + kBlockRows - 1) / kBlockRows;
    const size_t count = static_cast<size_t>(blocks * kBlockRows * rank);
    memory = std::move(*HugeBuffer::allocate(count * 4));
    for (int32_t c = 0; c < n; ++c)
      for (int32_t r = 0; r < rank; ++r) {
        const int32_t at = c / kBlockRows * kBlockRows * rank + r * kBlockRows + c % kBlockRows;
        if (type == FloatType::kBF16)
          reinterpret_cast<uint16_t*>(memory.data())[at] = float_to_bf16(value(c, r));
        else
          reinterpret_cast<float*>(memory.data())[at] = value(c, r);
      }
    matrix.blocks = memory.data();
  }
  float value(int32_t column, int32_t r) const {
    return values[static_cast<size_t>(column * matrix.rank + r)];
  }

  LowRank matrix;
  std::vector<float> values;
  HugeBuffer memory;
};

class LowRankProduct : public testing::TestWithParam<const Ops*> {};

TEST_P(LowRankProduct, AddsTheSumInOneOrderAndNothingElse) {
  std::mt19937 random(7);
  std::normal_distribution<float> number(0, 1);
  for (const FloatType type : {FloatType::kF32, FloatType::kBF16})
    for (const int32_t rank : {1, 3, 8, 16, 37})
      for (const int32_t n : {1, 15, 16, 17, 40, 96})
        for (const int32_t rows : {1, 2, 3, 4, 5, 9}) {
          const Factors b(n, rank, type, static_cast<uint32_t>(n * 1000 + rank));
          const int32_t t_stride = rank + 3, y_stride = n + 5;
          std::vector<float> t(static_cast<size_t>(rows * t_stride));
          std::vector<float> y(static_cast<size_t>(rows * y_stride));
          for (float& value : t) value = number(random);
          for (float& value : y) value = number(random);
          const std::vector<float> before = y;
          const int32_t begin = n > 32 ? 16 : 0;
          GetParam()->add_low_rank(
              b.matrix, t.data(), t_stride,
              {.rows = rows, .begin = begin, .end = n, .y = y.data(), .y_stride = y_stride});
          for (int32_t m = 0; m < rows; ++m)
            for (int32_t c = 0; c < y_stride; ++c) {
              const auto at = static_cast<size_t>(m * y_stride + c);
              float expected = before[at];
              if (c >= begin && c < n) {
                float s[4] = {0, 0, 0, 0};
                for (int32_t r = 0; r < rank; ++r)
                  s[r % 4] =
                      std::fma(t[static_cast<size_t>(m * t_stride + r)], b.value(c, r), s[r % 4]);
                expected += (s[0] + s[1]) + (s[2] + s[3]);
              }
              ASSERT_EQ(std::memcmp(&y[at], &expected, sizeof expected), 0)
                  << "n " << n << " rank " << rank << " rows " << rows << " at " << m << "," << c;
            }
        }
}

INSTANTIATE_TEST_SUITE_P(Isas, LowRankProduct, testing::ValuesIn(available_ops()), name_of);

}  // namespace
}  // namespace weir::kernels
