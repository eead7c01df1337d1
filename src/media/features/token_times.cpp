#include "media/features/token_times.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace weir::media {

namespace {

// [tokens][rows] of float64.
class Matrix {
 public:
  Matrix(int64_t tokens, int64_t rows)
      : rows_(rows), numbers_(static_cast<size_t>(tokens * rows)) {}
  double& at(int64_t token, int64_t row) {
    return numbers_[static_cast<size_t>(token * rows_ + row)];
  }
  double at(int64_t token, int64_t row) const {
    return numbers_[static_cast<size_t>(token * rows_ + row)];
  }
  std::span<double> of(int64_t token) {
    return std::span(numbers_).subspan(static_cast<size_t>(token * rows_),
                                       static_cast<size_t>(rows_));
  }

 private:
  int64_t rows_;
  std::vector<double> numbers_;
};

// One head's weights, each row's with mean 0 and variance 1 over the tokens. A row that all tokens
// attend to alike says nothing.
Matrix normalised(const AttendedRows& attended, int32_t head) {
  const int32_t tokens = attended.tokens, rows = attended.rows;
  const float* const weights = attended.weights.data() + int64_t{head} * tokens * rows;
  Matrix out(tokens, rows);
  for (int64_t row = 0; row < rows; ++row) {
    double mean = 0, squares = 0;
    for (int64_t t = 0; t < tokens; ++t) mean += weights[t * rows + row];
    mean /= tokens;
    for (int64_t t = 0; t < tokens; ++t) {
      const double off = weights[t * rows + row] - mean;
      squares += off * off;
    }
    const double deviation = std::sqrt(squares / tokens);
    for (int64_t t = 0; t < tokens; ++t)
      out.at(t, row) = deviation > 0 ? (weights[t * rows + row] - mean) / deviation : 0;
  }
  return out;
}

// Each number becomes the median of `width` around it; beyond the ends they are mirrored. Fewer rows
// than half of that stay as they are.
void smooth(std::span<double> numbers, int32_t width) {
  const int64_t half = width / 2, count = std::ssize(numbers);
  if (count <= half || half == 0) return;
  const std::vector<double> before(numbers.begin(), numbers.end());
  std::vector<double> window(static_cast<size_t>(2 * half + 1));
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = -half; k <= half; ++k) {
      int64_t from = std::abs(i + k);
      if (from >= count) from = 2 * (count - 1) - from;
      window[static_cast<size_t>(k + half)] = before[static_cast<size_t>(from)];
    }
    std::ranges::nth_element(window, window.begin() + half);
    numbers[static_cast<size_t>(i)] = window[static_cast<size_t>(half)];
  }
}

// What the heads agree on, of the tokens [begin, end).
Matrix mean_of_heads(const AttendedRows& attended) {
  Matrix mean(attended.end - attended.begin, attended.rows);
  for (int32_t head = 0; head < attended.heads; ++head) {
    Matrix weights = normalised(attended, head);
    for (int32_t t = attended.begin; t < attended.end; ++t) {
      smooth(weights.of(t), attended.median_width);
      for (int32_t row = 0; row < attended.rows; ++row)
        mean.at(t - attended.begin, row) += weights.at(t, row) / attended.heads;
    }
  }
  return mean;
}

enum class From : uint8_t { kBoth, kToken, kRow };

// The cheapest path from the first token and row to the last, each step to the next token, the next
// row, or both: where it came from, with one token and one row more than there are.
std::vector<From> warp(const Matrix& gains, int64_t tokens, int64_t rows) {
  std::vector<From> from(static_cast<size_t>((tokens + 1) * (rows + 1)), From::kToken);
  std::fill_n(from.begin(), rows + 1, From::kRow);
  constexpr float kNone = std::numeric_limits<float>::infinity();
  std::vector<float> before(static_cast<size_t>(rows + 1), kNone), costs = before;
  before[0] = 0;
  for (int64_t t = 1; t <= tokens; ++t) {
    costs[0] = kNone;
    for (int64_t row = 1; row <= rows; ++row) {
      const auto at = static_cast<size_t>(row);
      const float both = before[at - 1], token = before[at], same = costs[at - 1];
      From way = From::kRow;
      float least = same;
      if (both < token && both < same)
        way = From::kBoth, least = both;
      else if (token < both && token < same)
        way = From::kToken, least = token;
      costs[at] = static_cast<float>(least - gains.at(t - 1, row - 1));
      from[static_cast<size_t>(t * (rows + 1) + row)] = way;
    }
    std::swap(before, costs);
  }
  return from;
}

}  // namespace

std::vector<int32_t> token_times(const AttendedRows& attended) {
  CHECK(attended.heads > 0 && attended.rows > 0 && attended.begin >= 0 &&
        attended.begin < attended.end && attended.end <= attended.tokens);
  CHECK(std::ssize(attended.weights) ==
        int64_t{attended.heads} * attended.tokens * attended.rows);
  const int64_t tokens = attended.end - attended.begin, rows = attended.rows;
  const std::vector<From> from = warp(mean_of_heads(attended), tokens, rows);
  std::vector<int32_t> times(static_cast<size_t>(tokens), 0);
  for (int64_t t = tokens, row = rows; t > 0 && row > 0;) {
    times[static_cast<size_t>(t - 1)] = static_cast<int32_t>(row - 1);
    const From way = from[static_cast<size_t>(t * (rows + 1) + row)];
    if (way != From::kRow) --t;
    if (way != From::kToken) --row;
  }
  return times;
}

}  // namespace weir::media
