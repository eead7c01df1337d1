// Times of tokens, beside another implementation of the same steps, in Python.
#include "media/features/token_times.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace weir::media {
namespace {

uint64_t scatter(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Tokens that attend to their part of the rows, in every second head; and noise.
std::vector<float> made_up(uint64_t number, int32_t heads, int32_t tokens, int32_t rows) {
  std::vector<float> weights;
  uint64_t at = 0;
  for (int32_t h = 0; h < heads; ++h)
    for (int32_t t = 0; t < tokens; ++t)
      for (int32_t row = 0; row < rows; ++row) {
        const double part = static_cast<double>(rows) / tokens;
        const bool near = std::fabs(row - (t + 0.5) * rows / tokens) < part;
        const auto noise = static_cast<float>(scatter(number * 1000003 + at++) % 1024) / 4096.0f;
        weights.push_back(noise + (near && h % 2 == 0 ? 0.5f : 0.0f));
      }
  return weights;
}

std::vector<int32_t> times(uint64_t number, int32_t heads, int32_t tokens, int32_t rows,
                           int32_t begin, int32_t end) {
  const std::vector<float> weights = made_up(number, heads, tokens, rows);
  return token_times({.weights = weights,
                      .heads = heads,
                      .tokens = tokens,
                      .rows = rows,
                      .begin = begin,
                      .end = end});
}

TEST(TokenTimes, AgreeWithAnotherImplementation) {
  using Times = std::vector<int32_t>;
  EXPECT_EQ(times(1, 4, 9, 60, 2, 8), (Times{0, 23, 28, 36, 42, 45}));
  EXPECT_EQ(times(2, 3, 20, 150, 3, 19),
            (Times{0, 30, 34, 43, 55, 62, 64, 72, 86, 92, 94, 103, 116, 121, 124, 133}));
  EXPECT_EQ(times(3, 1, 5, 40, 0, 5), (Times{0, 7, 18, 25, 31}));
  EXPECT_EQ(times(4, 6, 30, 33, 1, 30),
            (Times{0,  0,  3,  4,  4,  10, 10, 10, 10, 10, 11, 15, 15, 15, 16,
                   16, 16, 19, 19, 19, 21, 21, 23, 23, 32, 32, 32, 32, 32}));
  EXPECT_EQ(times(5, 2, 12, 6, 0, 12), (Times{0, 0, 0, 4, 5, 5, 5, 5, 5, 5, 5, 5}));
  EXPECT_EQ(times(6, 2, 4, 3, 1, 3), (Times{0, 2}));
}

TEST(TokenTimes, NeverGoBackWhereAllWeightsAreEqual) {
  for (const float weight : {0.0f, 1.0f}) {
    const std::vector<float> weights(size_t{2} * 7 * 11, weight);
    const std::vector<int32_t> found = token_times(
        {.weights = weights, .heads = 2, .tokens = 7, .rows = 11, .begin = 0, .end = 7});
    ASSERT_EQ(found.size(), 7u);
    for (size_t i = 1; i < found.size(); ++i) {
      EXPECT_LE(found[i - 1], found[i]);
      EXPECT_LT(found[i], 11);
    }
  }
}

}  // namespace
}  // namespace weir::media
