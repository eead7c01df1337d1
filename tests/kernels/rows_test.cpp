// Row-wise kernels of every ISA against the formulas of ops.h in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "isas.h"

namespace weir::kernels {
namespace {

const std::vector<int32_t> kLengths = {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 100, 576, 1000, 4097};
constexpr Act kActs[] = {Act::kSilu, Act::kGeluTanh,  Act::kGelu,   Act::kRelu2,
                         Act::kRelu, Act::kQuickGelu, Act::kSigmoid};

// `guard` elements behind the row must stay as they are.
struct Row {
  static constexpr size_t kGuard = 32;
  explicit Row(int32_t n) : data(static_cast<size_t>(n) + kGuard, 77.0f), size(n) {}
  float* get() { return data.data(); }
  void expect_guard() const {
    for (size_t i = static_cast<size_t>(size); i < data.size(); ++i) ASSERT_EQ(data[i], 77.0f) << i;
  }
  std::vector<float> data;
  int32_t size;
};

std::vector<float> normal(std::mt19937& random, int32_t n, float scale = 1) {
  std::normal_distribution<float> value(0, scale);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = value(random);
  return x;
}

Row copy_of(const std::vector<float>& x) {
  Row row(static_cast<int32_t>(x.size()));
  std::copy(x.begin(), x.end(), row.data.begin());
  return row;
}

// Within `relative` of the true value, or within `absolute` where that is small.
void expect_near(double got, double want, double relative, double absolute, size_t i) {
  ASSERT_NEAR(got, want, absolute + relative * std::abs(want)) << "element " << i;
}

class Rows : public testing::TestWithParam<const Ops*> {};
INSTANTIATE_TEST_SUITE_P(Isas, Rows, testing::ValuesIn(available_ops()), name_of);

TEST_P(Rows, RmsNormIsItsFormula) {
  std::mt19937 random(1);
  for (const int32_t n : kLengths) {
    const std::vector<float> x = normal(random, n, 3), w = normal(random, n);
    double squares = 0;
    for (const float v : x) squares += double{v} * v;
    const double factor = 1 / std::sqrt(squares / n + 1e-5);
    for (const bool weighted : {true, false}) {
      Row y = copy_of(x);
      GetParam()->rms_norm(y.get(), weighted ? w.data() : nullptr, 1e-5f, n, y.get());
      for (size_t i = 0; i < x.size(); ++i)
        expect_near(y.data[i], x[i] * factor * (weighted ? w[i] : 1), 1e-6, 1e-12, i);
      y.expect_guard();
    }
  }
}

TEST_P(Rows, RmsNormOfZerosIsZero) {
  Row y = copy_of(std::vector<float>(40, 0.0f));
  GetParam()->rms_norm(y.get(), nullptr, 1e-6f, 40, y.get());
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(y.data[i], 0.0f);
}

TEST_P(Rows, LayerNormIsItsFormula) {
  std::mt19937 random(2);
  for (const int32_t n : kLengths) {
    std::vector<float> x = normal(random, n, 2);
    for (float& v : x) v += 5;
    const std::vector<float> w = normal(random, n), b = normal(random, n);
    double mean = 0, squares = 0;
    for (const float v : x) mean += v;
    mean /= n;
    for (const float v : x) squares += (v - mean) * (v - mean);
    const double factor = 1 / std::sqrt(squares / n + 1e-5);
    for (const bool affine : {true, false}) {
      Row y(n);
      GetParam()->layer_norm(x.data(), affine ? w.data() : nullptr, affine ? b.data() : nullptr,
                             1e-5f, n, y.get());
      for (size_t i = 0; i < x.size(); ++i) {
        const double normal_x = (x[i] - mean) * factor;
        const double slack = 3e-6 * std::min(factor, 100.0);  // The mean's own rounding.
        expect_near(y.data[i], affine ? normal_x * w[i] + b[i] : normal_x, 1e-6, slack, i);
      }
      y.expect_guard();
    }
  }
}

TEST_P(Rows, AddScaledAndScaleAreTheirFormulas) {
  std::mt19937 random(3);
  for (const int32_t n : kLengths) {
    const std::vector<float> x = normal(random, n), y0 = normal(random, n);
    Row y = copy_of(y0);
    GetParam()->add_scaled(x.data(), 0.37f, n, y.get());
    for (size_t i = 0; i < x.size(); ++i)
      expect_near(y.data[i], double{y0[i]} + double{0.37f} * x[i], 0, 3e-7, i);
    y.expect_guard();
    y = copy_of(y0);
    GetParam()->scale(0.37f, n, y.get());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y.data[i], 0.37f * y0[i]);
    y.expect_guard();
  }
}

TEST_P(Rows, ProductIsItsFormula) {
  std::mt19937 random(11);
  for (const int32_t n : kLengths) {
    const std::vector<float> x = normal(random, n), y0 = normal(random, n);
    Row y = copy_of(y0);
    GetParam()->product(x.data(), n, y.get());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y.data[i], x[i] * y0[i]);
    y.expect_guard();
  }
}

TEST_P(Rows, SoftcapKeepsItsDigitsFromTinyToHugeValues) {
  std::vector<float> x;
  for (double v = 1e-6; v < 1e4; v *= 1.01) {
    x.push_back(static_cast<float>(v));
    x.push_back(static_cast<float>(-v));
  }
  x.push_back(0);
  const auto n = static_cast<int32_t>(x.size());
  for (const float cap : {1.0f, 30.0f, 50.0f}) {
    Row y = copy_of(x);
    GetParam()->softcap(cap, n, y.get());
    for (size_t i = 0; i < x.size(); ++i)
      expect_near(y.data[i], cap * std::tanh(double{x[i]} / cap), 5e-7, 0, i);
    y.expect_guard();
  }
}

double activate(Act act, double x) {
  switch (act) {
    case Act::kSilu:
      return x / (1 + std::exp(-x));
    case Act::kGeluTanh:  // 0.5 x (1 + tanh(u)), free of cancellation.
      return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Act::kGelu:
      return 0.5 * x * std::erfc(-x * M_SQRT1_2);
    case Act::kRelu2:
      return x > 0 ? x * x : 0;
    case Act::kRelu:
      return x > 0 ? x : 0;
    case Act::kQuickGelu:
      return x / (1 + std::exp(-1.702 * x));
    case Act::kSigmoid:
      return 1 / (1 + std::exp(-x));
  }
  return 0;
}

TEST_P(Rows, ActivationsAreTheirFormulasOverTheirWholeRange) {
  std::vector<float> x;
  for (double v = -14; v <= 14; v += 0.0037) x.push_back(static_cast<float>(v));
  for (const float v : {-1000.0f, -100.0f, -50.0f, -1e-20f, 0.0f, 1e-20f, 50.0f, 100.0f, 1000.0f})
    x.push_back(v);
  const auto n = static_cast<int32_t>(x.size());
  for (const Act act : kActs) {
    SCOPED_TRACE(static_cast<int>(act));
    Row y = copy_of(x);
    GetParam()->act(act, n, y.get());
    // Exponents grow as x^2, and an exponent of size e, rounded, costs e * 6e-8.
    for (size_t i = 0; i < x.size(); ++i)
      expect_near(y.data[i], activate(act, x[i]), 3e-7 * (2 + std::min(x[i] * x[i], 200.0f)), 1e-35,
                  i);
    y.expect_guard();
  }
}

TEST_P(Rows, XieluIsItsFormulaOnBothSidesOfZero) {
  std::mt19937 random(9);
  for (const Xielu act : {Xielu{0.8f, 1.3f, 0.5f, -1e-6f}, {2.5f, 0.6f, 0, 0}}) {
    for (const int32_t n : kLengths) {
      std::vector<float> x = normal(random, n, 3);
      for (size_t i = 0; i < x.size(); i += 3) x[i] *= 1e-3f;
      x[0] = 0;
      x.back() = -200;
      Row y = copy_of(x), one = copy_of({x[x.size() / 2]});
      GetParam()->xielu(act, n, y.get());
      for (size_t i = 0; i < x.size(); ++i) {
        const double v = x[i];
        const double curve = v > 0
                                 ? act.positive * v * v
                                 : act.negative * (std::expm1(std::min<double>(v, act.least)) - v);
        const double expected = curve + act.beta * v;
        ASSERT_NEAR(y.data[i], expected, 1e-6 * std::max(std::abs(v), std::abs(expected)) + 1e-12);
      }
      y.expect_guard();
      GetParam()->xielu(act, 1, one.get());
      EXPECT_EQ(one.data[0], y.data[x.size() / 2]);
    }
  }
  Row y = copy_of({1, std::numeric_limits<float>::quiet_NaN(), -1});
  GetParam()->xielu({}, 3, y.get());
  EXPECT_TRUE(std::isnan(y.data[1]));
  EXPECT_FALSE(std::isnan(y.data[2]));
}

TEST_P(Rows, GatedActMultipliesTheActivationWithUp) {
  std::mt19937 random(4);
  for (const int32_t n : kLengths) {
    const std::vector<float> gate = normal(random, n, 2), up = normal(random, n);
    for (const Act act : kActs) {
      Row plain = copy_of(gate), y = copy_of(gate);
      GetParam()->act(act, n, plain.get());
      GetParam()->gated_act(y.get(), up.data(), {.act = act}, n, y.get());
      for (size_t i = 0; i < gate.size(); ++i) ASSERT_EQ(y.data[i], plain.data[i] * up[i]);
      y.expect_guard();
      y = copy_of(up);  // In place of `up`.
      GetParam()->gated_act(gate.data(), y.get(), {.act = act}, n, y.get());
      for (size_t i = 0; i < gate.size(); ++i) ASSERT_EQ(y.data[i], plain.data[i] * up[i]);
    }
  }
}

TEST_P(Rows, GatedActWithALimitClampsBothSides) {
  std::mt19937 random(8);
  for (const int32_t n : kLengths) {
    const std::vector<float> gate = normal(random, n, 8), up = normal(random, n, 8);
    for (const Act act : kActs) {
      const GatedAct gated = {.act = act, .limit = 7, .up_offset = 1};
      std::vector<float> low = gate;
      for (float& g : low) g = std::min(g, 7.0f);
      Row plain = copy_of(low), y = copy_of(gate), reference = copy_of(gate);
      GetParam()->act(act, n, plain.get());
      GetParam()->gated_act(y.get(), up.data(), gated, n, y.get());
      ops_for(Isa::kScalar).gated_act(gate.data(), up.data(), gated, n, reference.get());
      for (size_t i = 0; i < gate.size(); ++i) {
        ASSERT_EQ(y.data[i], plain.data[i] * (std::clamp(up[i], -7.0f, 7.0f) + 1));
        expect_near(y.data[i], reference.data[i], 2e-6 * (2 + std::min(gate[i] * gate[i], 200.0f)),
                    1e-6, i);
      }
      y.expect_guard();
    }
  }
  // gpt-oss: (up + 1) gate sigmoid(1.702 gate).
  const float gates[] = {9, -2}, ups[] = {-8, 0.5f};
  float y[2];
  GetParam()->gated_act(gates, ups, {.act = Act::kQuickGelu, .limit = 7, .up_offset = 1}, 2, y);
  EXPECT_NEAR(y[0], -6 * 7 / (1 + std::exp(-1.702 * 7)), 1e-4);
  EXPECT_NEAR(y[1], 1.5 * -2 / (1 + std::exp(1.702 * 2)), 1e-6);
}

TEST_P(Rows, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Act act : {Act::kSilu, Act::kGeluTanh, Act::kGelu, Act::kQuickGelu}) {
    Row y = copy_of({1, nan, 2});
    GetParam()->act(act, 3, y.get());
    EXPECT_TRUE(std::isnan(y.data[1])) << static_cast<int>(act);
    EXPECT_FALSE(std::isnan(y.data[2]));
  }
  for (const bool in_gate : {true, false}) {
    const float gate[] = {in_gate ? nan : 1, 1}, up[] = {in_gate ? 1 : nan, 1};
    float out[2];
    GetParam()->gated_act(gate, up, {.limit = 7, .up_offset = 1}, 2, out);
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_FALSE(std::isnan(out[1]));
  }
  Row y = copy_of({1, nan, 2});
  GetParam()->softcap(30, 3, y.get());
  EXPECT_TRUE(std::isnan(y.data[1]));
}

TEST_P(Rows, RopeRotatesPairsAndLeavesTheRest) {
  std::mt19937 random(5);
  for (const bool interleaved : {false, true})
    for (const int32_t head_dim : {20, 24, 64, 80, 128})
      for (const int32_t dims : {head_dim, head_dim / 2, 2}) {
        constexpr int32_t kHeads = 3;
        std::vector<float> cosines, sines;
        for (int32_t i = 0; i < dims / 2; ++i) {
          cosines.push_back(std::cos(static_cast<float>(i) * 0.7f + 0.2f));
          sines.push_back(std::sin(static_cast<float>(i) * 0.7f + 0.2f));
        }
        const std::vector<float> x = normal(random, kHeads * head_dim);
        Row y = copy_of(x);
        GetParam()->rope(y.get(), kHeads, head_dim, dims, cosines.data(), sines.data(),
                         interleaved);
        std::vector<double> want(x.begin(), x.end());
        for (size_t h = 0; h < kHeads; ++h)
          for (size_t i = 0; i < cosines.size(); ++i) {
            const size_t head = h * static_cast<size_t>(head_dim);
            const size_t first = head + (interleaved ? 2 * i : i);
            const size_t second = interleaved ? first + 1 : first + cosines.size();
            want[first] = double{x[first]} * cosines[i] - double{x[second]} * sines[i];
            want[second] = double{x[second]} * cosines[i] + double{x[first]} * sines[i];
          }
        for (size_t i = 0; i < x.size(); ++i) expect_near(y.data[i], want[i], 0, 1e-6, i);
        y.expect_guard();
      }
}

}  // namespace
}  // namespace weir::kernels
