// A linear layer whose columns lie in an order of their own is the layer that they are taken from.
#include "model/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cpu_ops.h"
#include "kernels/quant_weights.h"

namespace weir::model {
namespace {

using kernels::Aligned;

constexpr int32_t kRows = 90, kN = 40, kGroup = 32;

// Multiplies rows of `x` [kRows][k], those of `index` or the first ones.
std::vector<float> product(const Linear& weight, const std::vector<float>& x,
                           const std::vector<int32_t>& index, int32_t rows, int32_t first_row) {
  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  const Aligned<uint8_t> scratch(static_cast<size_t>(kScratchBytes));
  const int64_t k = weight.k;
  const uint8_t asked = weight.forms();
  const Aligned<std::byte> memory(
      static_cast<size_t>(ActivationForms::bytes(kRows * k, kRows, asked)));
  const ActivationForms forms = ActivationForms::place(memory.data(), kRows * k, kRows, asked);
  forms.convert(ops, asked, x.data(), k,
                {.k = weight.k, .begin = 0, .end = kRows, .column = 0, .columns = weight.k},
                kNoPrompts);
  std::vector<float> y(static_cast<size_t>(rows * kN));
  const kernels::GemmRange range = {.index = index.empty() ? nullptr : index.data(),
                                    .rows = rows,
                                    .begin = 0,
                                    .end = kN,
                                    .y = y.data(),
                                    .y_stride = kN};
  multiply(ops, weight, {.x = x.data(), .forms = &forms, .first_row = first_row}, range,
           scratch.data());
  return y;
}

void expect_ordered(bool int8, int32_t k) {
  const kernels::QuantWeights weights({kN, k, kGroup, 4, kernels::FloatType::kF16}, 3);
  Linear plain;
  plain.n = kN;
  plain.k = k;
  plain.held = Held::kCodes;
  plain.int8 = int8;
  plain.quant = weights.packed();
  Linear ordered = plain;
  std::vector<int32_t> order(static_cast<size_t>(k));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, std::mt19937(5));
  ordered.order = order.data();
  // Column i of the weight is for element order[i]: so the ordered layer's rows are those of the
  // plain one, each element moved there.
  const std::vector<float> x = kernels::random_floats(static_cast<size_t>(kRows * k), 7);
  std::vector<float> moved(x.size());
  for (int32_t m = 0; m < kRows; ++m)
    for (int32_t i = 0; i < k; ++i)
      moved[static_cast<size_t>(m * k + order[static_cast<size_t>(i)])] =
          x[static_cast<size_t>(m * k + i)];
  std::vector<int32_t> index;
  for (int32_t m = 0; m < kRows; m += 3) index.push_back(m);
  const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
  };
  EXPECT_TRUE(same(product(ordered, moved, {}, kRows, 0), product(plain, x, {}, kRows, 0)));
  EXPECT_TRUE(same(product(ordered, moved, {}, 5, 80), product(plain, x, {}, 5, 80)));
  const auto some = static_cast<int32_t>(index.size());
  EXPECT_TRUE(same(product(ordered, moved, index, some, 0), product(plain, x, index, some, 0)));
  EXPECT_FALSE(same(product(ordered, x, {}, kRows, 0), product(plain, x, {}, kRows, 0)));
}

TEST(Linear, MultipliesRowsInItsOwnOrder) {
  for (const bool int8 : {false, true})
    for (const int32_t k : {96, 4096}) expect_ordered(int8, k);
}

TEST(Linear, AsksForNoFormsWhereItHasAnOrder) {
  const kernels::QuantWeights weights({kN, 64, kGroup, 4, kernels::FloatType::kF16}, 3);
  Linear linear;
  linear.held = Held::kCodes;
  linear.int8 = true;
  linear.quant = weights.packed();
  EXPECT_EQ(linear.forms(), ActivationForms::int8_bit(kGroup));
  const int32_t order = 0;
  linear.order = &order;
  EXPECT_EQ(linear.forms(), 0);
}

}  // namespace
}  // namespace weir::model
