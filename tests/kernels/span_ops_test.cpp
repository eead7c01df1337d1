// Attention within a span in bf16: pages of every table bit for bit, attention against the formula
// in double, and a row against itself among others.
#include "kernels/span_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu_features.h"
#include "kernels/cpu_ops.h"
#include "kernels/quant_weights.h"

namespace weir::kernels {
namespace {

std::vector<std::pair<std::string, SpanOps>> span_tables() {
  std::vector<std::pair<std::string, SpanOps>> tables = {{"scalar", span_ops_for(Isa::kScalar)}};
  if (detect_isa() >= Isa::kAvx512 && cpu_features().fast_bf16)
    tables.emplace_back("vectors", span_ops_for(Isa::kAvx512));
  if (isa_available(Isa::kAmx)) tables.emplace_back("tiles", span_ops_for(Isa::kAmx));
  if (tables.size() > 1) amx::fill_spans_emulated(tables.emplace_back("emulated", SpanOps{}).second);
  return tables;
}

// Queries, keys and values of one head, [token][3][dims].
struct Head {
  Head(int32_t tokens, int32_t head_dims, uint32_t seed)
      : dims(head_dims),
        count(tokens),
        x(random_floats(static_cast<size_t>(tokens * 3 * head_dims), seed)) {
    for (int32_t t = 0; t < count; ++t)
      for (int32_t d = 0; d < dims; ++d) x[static_cast<size_t>(at(t, 0, d))] *= 2;
  }

  int64_t stride() const { return int64_t{3} * dims; }
  int64_t at(int32_t token, int32_t part, int32_t d) const {
    return token * stride() + int64_t{part} * dims + d;
  }
  float scale() const { return 1 / std::sqrt(static_cast<float>(dims)); }

  Aligned<uint16_t> pages(const SpanOps& ops) const {
    const int32_t number = (count + kPageTokens - 1) / kPageTokens;
    Aligned<uint16_t> out(static_cast<size_t>(number * span_page_numbers(dims)));
    std::memset(out.data(), 0xff, 2 * out.size());  // What is there before must not be read.
    for (int32_t page = 0; page < number; ++page)
      ops.fill_page(x.data() + at(page * kPageTokens, 1, 0), x.data() + at(page * kPageTokens, 2, 0),
                    stride(), std::min(kPageTokens, count - page * kPageTokens), dims,
                    out.data() + page * span_page_numbers(dims));
    return out;
  }

  // Rows [begin, end) of those that see each other, [first, last).
  std::vector<float> attend(const SpanOps& ops, int32_t begin, int32_t end, int32_t first,
                            int32_t last) const {
    static const Aligned<uint8_t> scratch(static_cast<size_t>(kScratchBytes));
    std::memset(scratch.data(), 0xff, scratch.size());
    const Aligned<uint16_t> seen = pages(ops);
    // Numbers between rows are not written.
    std::vector<float> out(static_cast<size_t>((end - begin) * (dims + 3)), 77);
    ops.attend({.q = x.data() + at(begin, 0, 0),
                .q_stride = stride(),
                .out = out.data(),
                .out_stride = dims + 3,
                .rows = end - begin,
                .dims = dims,
                .pages = seen.data(),
                .begin = first,
                .end = last,
                .scale = scale(),
                .scratch = scratch.data()});
    return out;
  }

  std::vector<double> expected(int32_t row, int32_t first, int32_t last) const {
    std::vector<double> weights, out(static_cast<size_t>(dims));
    double most = -INFINITY, sum = 0;
    for (int32_t j = first; j < last; ++j) {
      double score = 0;
      for (int32_t d = 0; d < dims; ++d)
        score += double{x[static_cast<size_t>(at(row, 0, d))]} *
                 double{x[static_cast<size_t>(at(j, 1, d))]};
      weights.push_back(score * double{scale()});
      most = std::max(most, weights.back());
    }
    for (double& weight : weights) sum += weight = std::exp(weight - most);
    for (int32_t j = first; j < last; ++j)
      for (int32_t d = 0; d < dims; ++d)
        out[static_cast<size_t>(d)] += weights[static_cast<size_t>(j - first)] / sum *
                                       double{x[static_cast<size_t>(at(j, 2, d))]};
    return out;
  }

  int32_t dims, count;
  std::vector<float> x;
};

constexpr int32_t kDims[] = {1, 20, 33, 64, 72, 80, 96, 128, 256};

TEST(SpanOps, PagesHaveScalarsBits) {
  for (const auto& [name, ops] : span_tables())
    for (const int32_t dims : kDims)
      for (const int32_t tokens : {1, 15, 17, 32, 83}) {
        const Head head(tokens, dims, 3);
        const Aligned<uint16_t> expected = head.pages(span_ops_for(Isa::kScalar));
        const Aligned<uint16_t> found = head.pages(ops);
        ASSERT_EQ(std::memcmp(expected.data(), found.data(), 2 * found.size()), 0)
            << name << " dims " << dims << " tokens " << tokens;
      }
}

// Rounding queries, keys, weights and values to bf16 dwarfs the rest.
TEST(SpanOps, AttentionIsItsFormula) {
  struct Case {
    int32_t tokens, first, last;
  };
  for (const auto& [name, ops] : span_tables())
    for (const int32_t dims : kDims)
      for (const Case& c : {Case{1, 0, 1}, {40, 0, 40}, {97, 0, 97}, {200, 64, 128}, {200, 33, 95},
                            {419, 0, 419}, {419, 150, 419}}) {
        const Head head(c.tokens, dims, 5);
        const std::vector<float> found = head.attend(ops, c.first, c.last, c.first, c.last);
        for (int32_t row = c.first; row < c.last; row += 7) {
          const std::vector<double> expected = head.expected(row, c.first, c.last);
          const float* out = found.data() + (row - c.first) * (dims + 3);
          for (int32_t d = 0; d < dims; ++d) {
            const double want = expected[static_cast<size_t>(d)];
            ASSERT_NEAR(double{out[d]}, want, 2e-2 * (1 + std::abs(want)))
                << name << " dims " << dims << " tokens " << c.tokens << " row " << row;
          }
          for (int32_t d = dims; d < dims + 3; ++d) ASSERT_EQ(out[d], 77);
        }
      }
}

TEST(SpanOps, ARowDependsNeitherOnOthersNorOnWhatItDoesNotSee) {
  constexpr int32_t kTokens = 300, kFirst = 70, kLast = 290;
  for (const auto& [name, ops] : span_tables()) {
    Head head(kTokens, 72, 9);
    const std::vector<float> all = head.attend(ops, kFirst, kLast, kFirst, kLast);
    for (int32_t t = 0; t < kTokens; ++t)
      for (int32_t i = 0; (t < kFirst || t >= kLast) && i < 3 * head.dims; ++i)
        head.x[static_cast<size_t>(head.at(t, 0, i))] = 1e4f;
    for (const int32_t rows : {1, 5, 16, 17, 32, 49})
      for (const int32_t begin : {kFirst, 101, kLast - rows}) {
        const std::vector<float> some = head.attend(ops, begin, begin + rows, kFirst, kLast);
        ASSERT_EQ(std::memcmp(some.data(), all.data() + (begin - kFirst) * (head.dims + 3),
                              some.size() * sizeof(float)),
                  0)
            << name << " rows " << rows << " from " << begin;
      }
  }
}

}  // namespace
}  // namespace weir::kernels
