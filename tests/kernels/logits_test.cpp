// Kernels over logits of every ISA against plain formulas in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "isas.h"

namespace weir::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const std::vector<int32_t> kLengths = {1, 3, 8, 16, 17, 31, 64, 127, 1000, 49'152, 151'669};

std::vector<float> row(std::mt19937& random, int32_t n, float scale) {
  std::normal_distribution<float> value(1, scale);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = value(random);
  return x;
}

int32_t size_of(const std::vector<float>& x) { return static_cast<int32_t>(x.size()); }

class Logits : public testing::TestWithParam<const Ops*> {};
INSTANTIATE_TEST_SUITE_P(Isas, Logits, testing::ValuesIn(available_ops()), name_of);

TEST_P(Logits, ArgmaxFindsTheLargestWhereverItIs) {
  std::mt19937 random(1);
  for (const int32_t n : kLengths) {
    std::vector<float> x = row(random, n, 3);
    for (int repeat = 0; repeat < 20; ++repeat) {
      const size_t at = random() % x.size();
      const float old = x[at];
      x[at] = 100;
      ASSERT_EQ(GetParam()->argmax(x.data(), n), static_cast<int32_t>(at)) << "n " << n;
      x[at] = old;
    }
  }
}

TEST_P(Logits, ArgmaxTakesTheFirstOfEquals) {
  std::vector<float> x(100, -1.0f);
  EXPECT_EQ(GetParam()->argmax(x.data(), 100), 0);
  x[90] = x[37] = x[38] = 2;
  EXPECT_EQ(GetParam()->argmax(x.data(), 100), 37);
  x.assign(100, -kInf);
  EXPECT_EQ(GetParam()->argmax(x.data(), 100), 0);
  x[99] = -5;
  EXPECT_EQ(GetParam()->argmax(x.data(), 100), 99);
}

TEST_P(Logits, NanNeverWinsTheArgmax) {
  std::mt19937 random(2);
  for (const int32_t n : {2, 16, 40, 1000}) {
    std::vector<float> x(static_cast<size_t>(n), kNan);
    EXPECT_EQ(GetParam()->argmax(x.data(), n), 0);
    for (int repeat = 0; repeat < 50; ++repeat) {
      const size_t at = random() % x.size();
      x[at] = -kInf;
      ASSERT_EQ(GetParam()->argmax(x.data(), n), static_cast<int32_t>(at));
      x[at] = -3;
      ASSERT_EQ(GetParam()->argmax(x.data(), n), static_cast<int32_t>(at));
      x[at] = kNan;
    }
  }
}

TEST_P(Logits, LogSumExpIsItsFormula) {
  std::mt19937 random(3);
  for (const int32_t n : kLengths)
    for (const float scale : {0.1f, 3.0f, 30.0f, 1000.0f}) {
      const std::vector<float> x = row(random, n, scale);
      double max = x[0], sum = 0;
      for (const float v : x) max = std::max<double>(max, v);
      for (const float v : x) sum += std::exp(v - max);
      const double want = max + std::log(sum);
      EXPECT_NEAR(GetParam()->log_sum_exp(x.data(), n), want, 5e-7 + 2e-7 * std::abs(want))
          << "n " << n << " scale " << scale;
    }
}

TEST_P(Logits, SoftmaxIsItsFormulaInPlaceOrNot) {
  std::mt19937 random(4);
  for (const int32_t n : kLengths)
    for (const float scale : {0.1f, 3.0f, 30.0f}) {
      const std::vector<float> x = row(random, n, scale);
      double max = x[0], sum = 0;
      for (const float v : x) max = std::max<double>(max, v);
      for (const float v : x) sum += std::exp(v - max);
      std::vector<float> y(x.size() + 16, 77.0f), in_place = x;
      GetParam()->softmax(x.data(), n, y.data());
      GetParam()->softmax(in_place.data(), n, in_place.data());
      for (size_t i = 0; i < x.size(); ++i) {
        const double want = std::exp(x[i] - max) / sum;
        const double relative = 5e-7 + 6e-8 * (max - x[i]);  // x - max is rounded.
        ASSERT_NEAR(y[i], want, relative * want + 1e-37) << "n " << n << " element " << i;
        ASSERT_EQ(y[i], in_place[i]);
      }
      for (size_t i = x.size(); i < y.size(); ++i) ASSERT_EQ(y[i], 77.0f);
    }
}

TEST_P(Logits, MaskedElementsHaveNoProbability) {
  std::vector<float> x(50, -kInf), y(50);
  EXPECT_EQ(GetParam()->log_sum_exp(x.data(), size_of(x)), -kInf);
  GetParam()->softmax(x.data(), size_of(x), y.data());
  for (const float p : y) EXPECT_EQ(p, 0.0f);
  x[7] = x[33] = 4;
  EXPECT_NEAR(GetParam()->log_sum_exp(x.data(), size_of(x)), 4 + std::log(2.0), 1e-6);
  GetParam()->softmax(x.data(), size_of(x), y.data());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], i == 7 || i == 33 ? 0.5f : 0.0f);
}

}  // namespace
}  // namespace weir::kernels
