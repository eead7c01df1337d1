// Kernels of states: every ISA against the scalar reference, to the bit, and that against the
// formulas of ops.h in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "isas.h"

namespace weir::kernels {
namespace {

std::vector<float> normal(std::mt19937& random, int64_t n, float scale = 1) {
  std::normal_distribution<float> value(0, scale);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = value(random);
  return x;
}

class States : public testing::TestWithParam<const Ops*> {};
INSTANTIATE_TEST_SUITE_P(Isas, States, testing::ValuesIn(available_ops()), name_of);

TEST_P(States, ConvolutionOfManyTokensIsItsFormula) {
  std::mt19937 random(1);
  for (const int32_t n : {1, 7, 16, 33, 100})
    for (const int32_t taps : {2, 4, 5}) {
      constexpr int32_t kTokens = 9;
      const int64_t stride = n + 3;
      const std::vector<float> weights = normal(random, taps * stride);
      const std::vector<float> input = normal(random, int64_t{kTokens} * n);
      std::vector<float> histories[2];
      for (std::vector<float>& history : histories)
        history.assign(static_cast<size_t>((taps - 1) * stride), 0.0f);
      for (int32_t token = 0; token < kTokens; ++token) {
        const float* x = input.data() + int64_t{token} * n;
        std::vector<float> rows[2];
        for (size_t i = 0; i < 2; ++i) {
          rows[i].assign(x, x + n);
          rows[i].push_back(77.0f);
          const Ops& ops = i == 0 ? *GetParam() : ops_for(Isa::kScalar);
          ops.conv_step({.weights = weights.data(),
                         .weight_stride = stride,
                         .history = histories[i].data(),
                         .history_stride = stride,
                         .taps = taps},
                        n, rows[i].data());
        }
        ASSERT_EQ(rows[0], rows[1]) << n << " channels, token " << token;
        ASSERT_EQ(rows[0].back(), 77.0f);
        ASSERT_EQ(histories[0], histories[1]);
        for (int32_t c = 0; c < n; ++c) {
          double sum = 0;
          for (int32_t t = 0; t < taps; ++t) {
            const int32_t from = token - (taps - 1) + t;
            if (from < 0) continue;
            sum += double{weights[static_cast<size_t>(t * stride + c)]} *
                   input[static_cast<size_t>(from * n + c)];
          }
          ASSERT_NEAR(rows[0][static_cast<size_t>(c)], sum, 1e-5) << "channel " << c;
        }
      }
    }
}

TEST_P(States, DeltaStepIsItsFormula) {
  std::mt19937 random(2);
  for (const int32_t dk : {1, 5, 16, 128})
    for (const int32_t dv : {1, 7, 16, 40, 128, 130}) {
      std::vector<float> states[2];
      states[0] = normal(random, int64_t{dk} * dv);
      states[0].push_back(77.0f);
      states[1] = states[0];
      for (int token = 0; token < 3; ++token) {
        const std::vector<float> q = normal(random, dk), k = normal(random, dk, 0.1f);
        const std::vector<float> v = normal(random, dv), before = states[0];
        const float decay = 0.9f, beta = 0.7f;
        std::vector<float> out[2];
        for (size_t i = 0; i < 2; ++i) {
          out[i].assign(static_cast<size_t>(dv) + 1, 77.0f);
          const Ops& ops = i == 0 ? *GetParam() : ops_for(Isa::kScalar);
          ops.delta_step({.state = states[i].data(),
                          .q = q.data(),
                          .k = k.data(),
                          .v = v.data(),
                          .decay = decay,
                          .beta = beta,
                          .dk = dk,
                          .dv = dv,
                          .out = out[i].data()});
        }
        ASSERT_EQ(out[0], out[1]) << dk << " x " << dv;
        ASSERT_EQ(states[0], states[1]) << dk << " x " << dv;
        ASSERT_EQ(out[0].back(), 77.0f);
        ASSERT_EQ(states[0].back(), 77.0f);
        for (size_t c = 0; c < static_cast<size_t>(dv); ++c) {
          const auto s = [&](size_t i) { return before[i * static_cast<size_t>(dv) + c]; };
          double expected = 0, sum = 0;
          for (size_t i = 0; i < k.size(); ++i) expected += double{k[i]} * decay * s(i);
          for (size_t i = 0; i < k.size(); ++i)
            sum += q[i] * (double{decay} * s(i) + k[i] * double{beta} * (v[c] - expected));
          ASSERT_NEAR(out[0][c], sum, 1e-4) << "column " << c;
        }
      }
    }
}

}  // namespace
}  // namespace weir::kernels
