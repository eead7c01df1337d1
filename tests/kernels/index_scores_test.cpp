// Scores of keys against their formula, on random shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "isas.h"
#include "kernels/ops.h"

namespace weir::kernels {
namespace {

struct Shape {
  int32_t heads = 1, dim = 1, count = 1, slots = kPageTokens;
  FloatType type = FloatType::kF16;
};

uint8_t* aligned(std::vector<uint8_t>& bytes) {
  const auto at = reinterpret_cast<uintptr_t>(bytes.data());
  return bytes.data() + (64 - at % 64) % 64;
}

// Keys in pages that lie in any order, beside bytes that are NaN.
class Keys {
 public:
  Keys(const Shape& shape, uint32_t seed) : shape_(shape), random_(seed) {
    const int32_t page_count = (shape.count + shape.slots - 1) / shape.slots;
    const int64_t element = shape.type == FloatType::kF32 ? 4 : 2;
    page_bytes_ = (int64_t{shape.slots} * shape.dim + 5) * element;
    memory_.assign(static_cast<size_t>(page_bytes_ * (page_count + 1)) + 64, 0xff);
    scratch_.assign(kScratchBytes + 64, 0xff);
    pages_.resize(static_cast<size_t>(page_count));
    std::iota(pages_.begin(), pages_.end(), 1);
    std::shuffle(pages_.begin(), pages_.end(), random_);
    std::normal_distribution<float> value(0, 1);
    const auto draw = [&](std::vector<float>& x, int32_t n) {
      x.resize(static_cast<size_t>(n));
      for (float& v : x) v = value(random_);
    };
    draw(q_, shape.heads * shape.dim);
    draw(weights_, shape.heads);
    draw(keys_, shape.count * shape.dim);
    for (int32_t j = 0; j < shape.count; ++j)
      for (int32_t d = 0; d < shape.dim; ++d) {
        float& x = keys_[static_cast<size_t>(j * shape.dim + d)];
        const uint16_t half = float_to_half(x);
        if (shape.type == FloatType::kF16) x = half_to_float(half);
        uint8_t* to = aligned(memory_) +
                      pages_[static_cast<size_t>(j / shape.slots)] * page_bytes_ +
                      (int64_t{d} * shape.slots + j % shape.slots) * element;
        if (shape.type == FloatType::kF32) {
          std::memcpy(to, &x, 4);
        } else {
          std::memcpy(to, &half, 2);
        }
      }
  }

  std::vector<float> scores(const Ops& ops, int32_t begin, int32_t end) {
    std::vector<float> scores(static_cast<size_t>(end - begin) + 1, 77.0f);
    std::fill(scratch_.begin(), scratch_.end(), static_cast<uint8_t>(random_()));
    ops.index_scores({.q = q_.data(),
                      .weights = weights_.data(),
                      .heads = shape_.heads,
                      .dim = shape_.dim,
                      .keys = aligned(memory_),
                      .page_bytes = page_bytes_,
                      .slots = shape_.slots,
                      .type = shape_.type,
                      .pages = pages_.data(),
                      .begin = begin,
                      .end = end,
                      .scores = scores.data(),
                      .scratch = aligned(scratch_)});
    EXPECT_EQ(scores.back(), 77.0f) << "written after the end";
    scores.pop_back();
    return scores;
  }

  double expected(int32_t key) const {
    double score = 0;
    for (int32_t h = 0; h < shape_.heads; ++h) {
      double dot = 0;
      for (int32_t d = 0; d < shape_.dim; ++d)
        dot += double{q_[static_cast<size_t>(h * shape_.dim + d)]} *
               keys_[static_cast<size_t>(key * shape_.dim + d)];
      score += weights_[static_cast<size_t>(h)] * std::max(dot, 0.0);
    }
    return score;
  }

 private:
  Shape shape_;
  std::mt19937 random_;
  int64_t page_bytes_ = 0;
  std::vector<uint8_t> memory_, scratch_;
  std::vector<int32_t> pages_;
  std::vector<float> q_, weights_, keys_;
};

class IndexScoresTest : public testing::TestWithParam<const Ops*> {};
INSTANTIATE_TEST_SUITE_P(Isas, IndexScoresTest, testing::ValuesIn(available_ops()), name_of);

TEST_P(IndexScoresTest, AreTheirFormulaWhateverTheRange) {
  std::mt19937 random(21);
  const auto up_to = [&](uint32_t n) { return static_cast<int32_t>(1 + random() % n); };
  std::vector<Shape> shapes = {{.heads = 64, .dim = 128, .count = 300},
                               {.heads = 1, .dim = kIndexDimMax, .count = 33},
                               {.heads = kIndexNumbersMax / 128, .dim = 128, .count = 40}};
  for (int round = 0; round < 40; ++round)
    shapes.push_back({.heads = up_to(70),
                      .dim = up_to(150),
                      .count = up_to(400),
                      .slots = 1 << (random() % 6),
                      .type = round % 3 == 0 ? FloatType::kF32 : FloatType::kF16});
  for (const Shape& shape : shapes) {
    SCOPED_TRACE(testing::Message() << shape.heads << " heads of " << shape.dim << ", "
                                    << shape.count << " keys in pages of " << shape.slots);
    Keys keys(shape, random());
    const std::vector<float> all = keys.scores(*GetParam(), 0, shape.count);
    const double size = std::sqrt(static_cast<double>(shape.dim) * shape.heads);
    for (int32_t j = 0; j < shape.count; ++j)
      ASSERT_NEAR(all[static_cast<size_t>(j)], keys.expected(j), 3e-6 * size + 1e-5) << j;
    const int32_t begin = up_to(static_cast<uint32_t>(shape.count)) / kPageTokens * kPageTokens;
    const int32_t end = std::min(shape.count, begin + up_to(90));
    const std::vector<float> part = keys.scores(*GetParam(), begin, end);
    EXPECT_EQ(std::memcmp(part.data(), all.data() + begin, part.size() * 4), 0);
  }
}

}  // namespace
}  // namespace weir::kernels
