// Kernels of states: every ISA against the scalar reference, to the bit, and that against the
// formulas of ops.h in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
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

// Where element (i, c) of a state lies.
size_t at(int32_t dk, int32_t dv, int32_t i, int32_t c) {
  const int32_t first = c - c % kDeltaStrip;
  return static_cast<size_t>(first * dk + i * std::min(dv - first, kDeltaStrip) + c - first);
}

// Tokens of a head, each with its numbers beside one another.
struct DeltaTokens {
  DeltaTokens(std::mt19937& random, int32_t tokens, int32_t key_dim, int32_t value_dim, bool keys)
      : count(tokens), dk(key_dim), dv(value_dim), key_decays(keys) {
    std::uniform_real_distribution<float> share(0.5f, 1);
    const auto add = [&](int32_t n, float scale) {
      const std::vector<float> some = normal(random, n, scale);
      rows.insert(rows.end(), some.begin(), some.end());
    };
    for (int32_t t = 0; t < count; ++t) {
      add(dk, 1);     // q
      add(dk, 0.1f);  // k
      add(dv, 1);
      for (int32_t i = 0; i <= dk; ++i) rows.push_back(share(random));  // Decays, beta.
    }
  }
  int64_t stride() const { return 3 * dk + dv + 1; }
  DeltaRun run(float* state, int32_t first, int32_t tokens, float* out) const {
    const auto part = [&](int64_t offset) {
      return TokenRows{rows.data() + first * stride() + offset, stride()};
    };
    return {.state = state,
            .tokens = tokens,
            .dk = dk,
            .dv = dv,
            .q = part(0),
            .k = part(dk),
            .v = part(2 * dk),
            .decay = part(2 * dk + dv),
            .key_decays = key_decays,
            .beta = part(3 * dk + dv),
            .out = out + first * out_stride(),
            .out_stride = out_stride()};
  }
  int64_t out_stride() const { return dv + 1; }

  int32_t count, dk, dv;
  bool key_decays;
  std::vector<float> rows;
};

// The rule in double.
void expect_formula(const DeltaTokens& tokens, const std::vector<float>& before,
                    const std::vector<float>& out) {
  std::vector<double> s(before.begin(), before.end());
  for (int32_t t = 0; t < tokens.count; ++t) {
    const DeltaRun run = tokens.run(nullptr, t, 1, nullptr);
    for (int32_t c = 0; c < tokens.dv; ++c) {
      double expected = 0, sum = 0;
      for (int32_t i = 0; i < tokens.dk; ++i) {
        double& element = s[at(tokens.dk, tokens.dv, i, c)];
        element *= run.decay.x[tokens.key_decays ? i : 0];
        expected += run.k.x[i] * element;
      }
      for (int32_t i = 0; i < tokens.dk; ++i) {
        double& element = s[at(tokens.dk, tokens.dv, i, c)];
        element += run.k.x[i] * (double{*run.beta.x} * (double{run.v.x[c]} - expected));
        sum += run.q.x[i] * element;
      }
      ASSERT_NEAR(out[static_cast<size_t>(t * tokens.out_stride() + c)], sum, 3e-4)
          << tokens.dk << " x " << tokens.dv << ", token " << t << ", column " << c;
    }
  }
}

TEST_P(States, ARunOfTheDeltaRuleIsItsFormulaAndItsTokensOneByOne) {
  std::mt19937 random(2);
  for (const int32_t dk : {1, 5, 16, 128})
    for (const int32_t dv : {1, 7, 16, 40, 100, 128, 130})
      for (const bool key_decays : {false, true}) {
        const DeltaTokens tokens(random, 5, dk, dv, key_decays);
        std::vector<float> before = normal(random, int64_t{dk} * dv);
        before.push_back(77.0f);
        std::vector<std::vector<float>> states, outs;
        const auto go = [&](const Ops& ops, int32_t together) {
          std::vector<float> state = before;
          std::vector<float> out(static_cast<size_t>(5 * tokens.out_stride()), 77.0f);
          for (int32_t t = 0; t < 5; t += together)
            ops.delta_run(tokens.run(state.data(), t, std::min(together, 5 - t), out.data()));
          for (size_t t = 0; t < 5; ++t)
            ASSERT_EQ(out[t * static_cast<size_t>(tokens.out_stride()) + static_cast<size_t>(dv)],
                      77.0f);
          ASSERT_EQ(state.back(), 77.0f);
          states.push_back(std::move(state));
          outs.push_back(std::move(out));
        };
        go(ops_for(Isa::kScalar), 1);
        for (const int32_t together : {1, 2, 3, 5}) go(*GetParam(), together);
        for (size_t i = 1; i < states.size(); ++i) {
          ASSERT_EQ(outs[i], outs[0]) << dk << " x " << dv << ", cut " << i;
          ASSERT_EQ(states[i], states[0]) << dk << " x " << dv << ", cut " << i;
        }
        expect_formula(tokens, before, outs[0]);
      }
}

TEST_P(States, DecaysAreTheirFormula) {
  std::mt19937 random(3);
  for (const int32_t n : {1, 4, 16, 37}) {
    std::vector<float> rate = normal(random, n), bias = normal(random, n);
    for (float& r : rate) r = std::abs(r) + 0.01f;
    for (const float scale : {0.1f, 3.0f, 40.0f}) {
      const std::vector<float> x = normal(random, n, scale);
      std::vector<float> y = x;
      y.push_back(77.0f);
      GetParam()->delta_decays(rate.data(), bias.data(), n, y.data());
      for (size_t i = 0; i < x.size(); ++i) {
        const double exponent = rate[i] * std::log1p(std::exp(double{x[i]} + bias[i]));
        ASSERT_NEAR(y[i], std::exp(-exponent), 1e-6 * (1 + exponent) * std::exp(-exponent) + 1e-37)
            << x[i] << " + " << bias[i] << " at rate " << rate[i];
      }
      ASSERT_EQ(y.back(), 77.0f);
    }
  }
  std::vector<float> odd = {100.0f, std::numeric_limits<float>::quiet_NaN(), -100.0f};
  const std::vector<float> ones(3, 1.0f);
  GetParam()->delta_decays(ones.data(), ones.data(), 3, odd.data());
  EXPECT_NEAR(odd[0], 0, 1e-37);
  EXPECT_TRUE(std::isnan(odd[1]));
  EXPECT_EQ(odd[2], 1.0f);
}

TEST_P(States, ARunOfADecayingStateIsItsFormulaAndItsTokensOneByOne) {
  constexpr int32_t kTokens = 11;
  std::mt19937 random(3);
  for (const int32_t dk : {1, 5, 16, 128})
    for (const int32_t dv : {1, 7, 16, 40, 64, 128, 130}) {
      const std::vector<float> q = normal(random, kTokens * dk, 0.1f);
      const std::vector<float> k = normal(random, kTokens * (dk + 2)),
                               v = normal(random, kTokens * dv);
      const std::vector<float> gain = normal(random, kTokens);
      std::vector<float> decay = normal(random, kTokens), before = normal(random, int64_t{dk} * dv);
      for (float& d : decay) d = 1 / (1 + d * d);
      before.push_back(77.0f);
      std::vector<std::vector<float>> states, outs;
      const auto go = [&](const Ops& ops, int32_t together) {
        std::vector<float> state = before, out(static_cast<size_t>(kTokens * (dv + 1)), 77.0f);
        for (int32_t t = 0; t < kTokens; t += together)
          ops.decay_run({.state = state.data(),
                         .tokens = std::min(together, kTokens - t),
                         .dk = dk,
                         .dv = dv,
                         .q = {q.data() + t * dk, dk},
                         .k = {k.data() + t * (dk + 2), dk + 2},
                         .v = {v.data() + t * dv, dv},
                         .decay = {decay.data() + t, 1},
                         .gain = {gain.data() + t, 1},
                         .out = out.data() + t * (dv + 1),
                         .out_stride = dv + 1});
        for (size_t t = 1; t <= kTokens; ++t)
          ASSERT_EQ(out[t * (static_cast<size_t>(dv) + 1) - 1], 77.0f);
        ASSERT_EQ(state.back(), 77.0f);
        states.push_back(std::move(state));
        outs.push_back(std::move(out));
      };
      go(ops_for(Isa::kScalar), 1);
      for (const int32_t together : {1, 2, 4, 7, kTokens}) go(*GetParam(), together);
      for (size_t i = 1; i < states.size(); ++i) {
        ASSERT_EQ(outs[i], outs[0]) << dk << " x " << dv << ", cut " << i;
        ASSERT_EQ(states[i], states[0]) << dk << " x " << dv << ", cut " << i;
      }
      std::vector<double> s(before.begin(), before.end());
      for (int32_t t = 0; t < kTokens; ++t)
        for (int32_t c = 0; c < dv; ++c) {
          const auto at = [](const std::vector<float>& x, int64_t i) {
            return double{x[static_cast<size_t>(i)]};
          };
          double sum = 0;
          for (int32_t i = 0; i < dk; ++i) {
            double& element = s[static_cast<size_t>(i * dv + c)];
            element =
                at(decay, t) * element + at(k, t * (dk + 2) + i) * at(gain, t) * at(v, t * dv + c);
            sum += at(q, t * dk + i) * element;
          }
          ASSERT_NEAR(at(outs[0], t * (dv + 1) + c), sum, 3e-4) << dk << " x " << dv << ", " << c;
        }
    }
}

// Tokens of a selective scan, each with its numbers beside one another, and what it begins with.
struct ScanTokens {
  ScanTokens(std::mt19937& random, int32_t tokens, int32_t channel_count, int32_t state_count)
      : count(tokens), channels(channel_count), states(state_count) {
    std::uniform_real_distribution<float> rates(0.01f, 20);
    const auto strips = static_cast<size_t>((channels + kScanStrip - 1) / kScanStrip);
    const size_t floats = strips * kScanStrip * static_cast<size_t>(states);
    for (size_t i = 0; i < floats; ++i) rate.push_back(-rates(random));
    before = normal(random, static_cast<int64_t>(floats));
    before.push_back(77.0f);
    skip = normal(random, channels);
    for (int32_t t = 0; t < count; ++t) {
      const std::vector<float> some = normal(random, stride(), t == 1 ? 8.0f : 1.0f);
      rows.insert(rows.end(), some.begin(), some.end());
    }
  }
  int64_t stride() const { return 2 * channels + 2 * states; }
  int64_t out_stride() const { return channels + 1; }
  SelectiveScan run(float* state, int32_t first, int32_t tokens, float* out) const {
    const auto part = [&](int64_t offset) {
      return TokenRows{rows.data() + first * stride() + offset, stride()};
    };
    return {.state = state,
            .rate = rate.data(),
            .skip = skip.data(),
            .tokens = tokens,
            .channels = channels,
            .states = states,
            .x = part(0),
            .step = part(channels),
            .b = part(2 * channels),
            .c = part(2 * channels + states),
            .out = out + first * out_stride(),
            .out_stride = out_stride()};
  }

  int32_t count, channels, states;
  std::vector<float> rate, before, skip, rows;
};

// The scan in double.
void expect_formula(const ScanTokens& tokens, const std::vector<float>& out) {
  std::vector<double> h(tokens.before.begin(), tokens.before.end());
  for (int32_t t = 0; t < tokens.count; ++t) {
    const SelectiveScan run = tokens.run(nullptr, t, 1, nullptr);
    for (int32_t c = 0; c < tokens.channels; ++c) {
      const double step = std::log1p(std::exp(double{run.step.x[c]})), x = run.x.x[c];
      double sum = double{tokens.skip[static_cast<size_t>(c)]} * x, magnitude = std::abs(sum);
      for (int32_t i = 0; i < tokens.states; ++i) {
        const int32_t in_strip = c % kScanStrip;
        const auto element =
            static_cast<size_t>((c - in_strip) * tokens.states + i * kScanStrip + in_strip);
        h[element] = std::exp2(step * double{tokens.rate[element]}) * h[element] +
                     double{run.b.x[i]} * step * x;
        sum += run.c.x[i] * h[element];
        magnitude += std::abs(run.c.x[i] * h[element]);
      }
      ASSERT_NEAR(out[static_cast<size_t>(t * tokens.out_stride() + c)], sum,
                  3e-6 * (magnitude + 1))
          << tokens.channels << " x " << tokens.states << ", token " << t << ", channel " << c;
    }
  }
}

TEST_P(States, ASelectiveScanIsItsFormulaAndItsTokensOneByOne) {
  std::mt19937 random(4);
  for (const int32_t channels : {1, 7, 8, 16, 21, 40, 128})
    for (const int32_t states : {1, 3, 8, 16, 64}) {
      const ScanTokens tokens(random, 5, channels, states);
      std::vector<std::vector<float>> results, outs;
      for (const int32_t together : {1, 2, 5}) {
        std::vector<float> state = tokens.before;
        std::vector<float> out(static_cast<size_t>(5 * tokens.out_stride()), 77.0f);
        for (int32_t t = 0; t < 5; t += together)
          GetParam()->selective_scan(
              tokens.run(state.data(), t, std::min(together, 5 - t), out.data()));
        for (size_t t = 0; t < 5; ++t)
          ASSERT_EQ(out[(t + 1) * static_cast<size_t>(tokens.out_stride()) - 1], 77.0f);
        ASSERT_EQ(state.back(), 77.0f);
        results.push_back(std::move(state));
        outs.push_back(std::move(out));
      }
      for (size_t i = 1; i < outs.size(); ++i) {
        ASSERT_EQ(outs[i], outs[0]) << channels << " x " << states << ", cut " << i;
        ASSERT_EQ(results[i], results[0]) << channels << " x " << states << ", cut " << i;
      }
      expect_formula(tokens, outs[0]);
    }
}

// What a channel gives does not depend on where it lies.
TEST_P(States, AChannelOfASelectiveScanIsTheSameAmongOthers) {
  std::mt19937 random(5);
  constexpr int32_t kChannels = 37, kStates = 5;
  const ScanTokens all(random, 3, kChannels, kStates);
  std::vector<float> state = all.before, out(static_cast<size_t>(3 * all.out_stride()));
  GetParam()->selective_scan(all.run(state.data(), 0, 3, out.data()));
  for (const int32_t channel : {0, 15, 16, 31, 36}) {
    const int32_t in_strip = channel % kScanStrip;
    std::vector<float> own(kScanStrip * kStates), rate(own.size()), alone(3);
    for (size_t i = 0; i < kStates; ++i) {
      const size_t from = static_cast<size_t>((channel - in_strip) * kStates + in_strip);
      own[i * kScanStrip] = all.before[from + i * kScanStrip];
      rate[i * kScanStrip] = all.rate[from + i * kScanStrip];
    }
    SelectiveScan one = all.run(own.data(), 0, 3, alone.data());
    one.rate = rate.data();
    one.skip += channel;
    one.x.x += channel;
    one.step.x += channel;
    one.channels = 1;
    one.out_stride = 1;
    GetParam()->selective_scan(one);
    for (size_t t = 0; t < 3; ++t)
      EXPECT_EQ(alone[t],
                out[t * static_cast<size_t>(all.out_stride()) + static_cast<size_t>(channel)])
          << "channel " << channel << ", token " << t;
  }
}

TEST_P(States, ASelectiveScanForgetsAndSpoilsAsItsNumbersSay) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  // A long step forgets the state; a very negative one keeps it; a NaN stays in its channel.
  const std::vector<float> step = {100.0f, -100.0f, kNan, 0.0f}, x(4, 1.0f), skip(4, 0.0f);
  const float b = 0, c = 1;
  std::vector<float> state(kScanStrip, 3.0f), out(4);
  const std::vector<float> rate(kScanStrip, -2.0f);
  GetParam()->selective_scan({.state = state.data(),
                              .rate = rate.data(),
                              .skip = skip.data(),
                              .tokens = 1,
                              .channels = 4,
                              .states = 1,
                              .x = {x.data(), 4},
                              .step = {step.data(), 4},
                              .b = {&b, 1},
                              .c = {&c, 1},
                              .out = out.data(),
                              .out_stride = 4});
  EXPECT_NEAR(out[0], 0, 1e-37);
  EXPECT_EQ(out[1], 3.0f);
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_NEAR(out[3], 3 * std::exp2(-2 * std::log(2.0)), 1e-6);
}

}  // namespace
}  // namespace weir::kernels
