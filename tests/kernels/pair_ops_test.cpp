// Products of pairs in bf16: every table against the scalar one, bit for bit, and a row alone
// against the same row among others.
#include "kernels/pair_ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "base/huge_pages.h"
#include "kernels/cpu_ops.h"

namespace weir::kernels {
namespace {

struct Sizes {
  int32_t rows, n, k;
};

std::vector<float> drawn(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(count);
  for (float& x : out) x = normal(random);
  return out;
}

// Weights of 16 bits that stand for drawn numbers.
std::vector<uint16_t> drawn_weights(FloatType type, size_t count, unsigned seed) {
  std::vector<uint16_t> out;
  for (const float x : drawn(count, seed)) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    // As f16: sign, a small exponent, ten bits of the mantissa.
    out.push_back(type == FloatType::kBF16
                      ? static_cast<uint16_t>(bits >> 16)
                      : static_cast<uint16_t>((bits >> 16 & 0x8000) | (12 + bits % 5) << 10 |
                                              (bits >> 13 & 0x3ff)));
  }
  return out;
}

// The rows that an entry `round` makes, in aligned memory.
struct Rounded {
  Rounded(const PairOps& ops, const std::vector<float>& x, int32_t rows, int32_t k)
      : memory(*HugeBuffer::allocate(static_cast<size_t>(rows) *
                                     static_cast<size_t>(pair_stride(k)) * 2)),
        out{.k = k, .stride = pair_stride(k), .x = reinterpret_cast<uint16_t*>(memory.data())} {
    ops.round(x.data(), k, rows, out);
  }
  HugeBuffer memory;
  PairRows out;
};

std::vector<float> product(const PairOps& ops, const FloatMatrix& w, const PairRows& x,
                           GemmRange range) {
  static const HugeBuffer scratch = *HugeBuffer::allocate(kScratchBytes);
  std::vector<float> y(static_cast<size_t>(range.rows) * static_cast<size_t>(w.n), NAN);
  range.y = y.data();
  range.y_stride = w.n;
  ops.gemm(w, x, range, scratch.data());
  return y;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(PairOps, EveryTableGivesTheScalarOnesBits) {
  const PairOps& scalar = pair_ops_for(Isa::kScalar);
  const PairOps& best = pair_ops_for(detect_isa());
  for (const Sizes& s : {Sizes{1, 16, 32}, Sizes{13, 33, 31}, Sizes{24, 48, 588}, Sizes{5, 1, 1},
                         Sizes{37, 70, 269}, Sizes{12, 96, 1152}, Sizes{2, 15, 4304}})
    for (const FloatType type : {FloatType::kBF16, FloatType::kF16}) {
      const auto x = drawn(static_cast<size_t>(s.rows) * static_cast<size_t>(s.k), 1);
      const auto weights =
          drawn_weights(type, static_cast<size_t>(s.n) * static_cast<size_t>(s.k), 2);
      const FloatMatrix w = {.n = s.n, .k = s.k, .type = type, .rows = weights.data()};
      const Rounded a(scalar, x, s.rows, s.k), b(best, x, s.rows, s.k);
      EXPECT_EQ(std::memcmp(a.out.x, b.out.x,
                            static_cast<size_t>(s.rows) * static_cast<size_t>(a.out.stride) * 2),
                0);
      const GemmRange range = {.rows = s.rows, .end = s.n};
      EXPECT_TRUE(same_bits(product(scalar, w, a.out, range), product(best, w, b.out, range)))
          << s.rows << " x " << s.n << " x " << s.k;
    }
}

TEST(PairOps, ARowDoesNotDependOnOthersNorOnTheRange) {
  const PairOps& ops = pair_ops_for(detect_isa());
  constexpr Sizes kSizes = {29, 80, 203};
  const auto x = drawn(kSizes.rows * kSizes.k, 3);
  const auto weights = drawn_weights(FloatType::kBF16, kSizes.n * kSizes.k, 4);
  const FloatMatrix w = {
      .n = kSizes.n, .k = kSizes.k, .type = FloatType::kBF16, .rows = weights.data()};
  const Rounded rows(ops, x, kSizes.rows, kSizes.k);
  const auto all = product(ops, w, rows.out, {.rows = kSizes.rows, .end = kSizes.n});
  for (int32_t m = 0; m < kSizes.rows; ++m) {
    const auto alone = product(ops, w, rows.out, {.index = &m, .rows = 1, .begin = 16, .end = 64});
    for (int32_t c = 0; c < kSizes.n; ++c) {
      const float found = alone[static_cast<size_t>(c)];
      if (c < 16 || c >= 64)
        EXPECT_TRUE(std::isnan(found)) << "nothing is written outside the range";
      else
        EXPECT_EQ(found, all[static_cast<size_t>(m * kSizes.n + c)]);
    }
  }
}

}  // namespace
}  // namespace weir::kernels
