// Float8 rows on their way to kernels: what the packed matrix reads back as is what the source
// says.
#include "model/row_packer.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "kernels/cpu_ops.h"
#include "kernels/quant_weights.h"
#include "model/rows/fp8_rows.h"

namespace weir::model {
namespace {

using kernels::Aligned;

// A module of float8 numbers, none of them a NaN.
struct Module {
  Module(int32_t rows, int32_t columns, const Fp8Rows::Scales& its_scales)
      : n(rows),
        k(columns),
        numbers(static_cast<size_t>(n) * static_cast<size_t>(k)),
        source(std::make_shared<Fp8Rows>("test", k, its_scales)) {
    std::mt19937 random(3);
    for (uint8_t& byte : numbers) {
      byte = static_cast<uint8_t>(random());
      if ((byte & 0x7f) == 0x7f) byte ^= 1;
    }
    const int64_t last = (n - 1) / its_scales.rows * its_scales.row_step;
    const int64_t count = last + (k + its_scales.columns - 1) / its_scales.columns;
    scales = kernels::random_floats(static_cast<size_t>(count), 5);
  }
  RowSource::Bases bases() const {
    return {reinterpret_cast<const std::byte*>(numbers.data()),
            reinterpret_cast<const std::byte*>(scales.data())};
  }
  RowPacker packer(int64_t first, const RowRuns& runs, int32_t count) const {
    return {source, first, runs, count, k, false};
  }

  int32_t n, k;
  std::vector<uint8_t> numbers;
  std::vector<float> scales;
  std::shared_ptr<const RowSource> source;
};

// All rows of a packer in its form.
struct Packed {
  Packed(const Module& module, const RowPacker& packer)
      : linear(packer.linear()),
        numbers(static_cast<size_t>(linear.number_bytes())),
        scales(static_cast<size_t>(linear.scale_bytes())) {
    finite = packer.pack(module.bases(), 0, linear.n, {numbers.data(), scales.data()});
    linear.point(numbers.data(), scales.data());
  }

  Linear linear;
  Aligned<uint8_t> numbers, scales;
  bool finite = false;
};

void expect_rows(const Module& module, int64_t first, const RowRuns& runs, int32_t count,
                 bool row_scales) {
  const RowPacker packer = module.packer(first, runs, count);
  const Packed packed(module, packer);
  ASSERT_EQ(packed.linear.held, Held::kFloat8);
  EXPECT_EQ(packed.linear.float8.row_scales, row_scales);
  EXPECT_TRUE(packed.finite);
  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  std::vector<float> found(static_cast<size_t>(module.k)), expected(found.size());
  for (int32_t row = 0; row < count; ++row) {
    read_row(ops, packed.linear, row, found.data());
    module.source->floats(module.bases(), first + runs.stored(row), 1, expected.data());
    ASSERT_EQ(found, expected) << "row " << row << " from " << first;
  }
}

constexpr Fp8Rows::Scales kBlocks = {.rows = 128, .columns = 128, .row_step = 3};

TEST(RowPacker, KeepsAScaleForSixteenRowsThatShareIt) {
  const Module module(300, 320, kBlocks);
  expect_rows(module, 0, {}, 300, false);
  expect_rows(module, 112, {}, 37, false);
  expect_rows(module, 16, {.length = 32, .step = 96}, 70, false);
}

TEST(RowPacker, KeepsAScaleForEachRowWhereABlockReachesOverAnEdge) {
  const Module module(300, 320, kBlocks);
  expect_rows(module, 120, {}, 100, true);
  expect_rows(module, 0, {.length = 24, .step = 48}, 60, true);
  expect_rows(Module(40, 96, {.rows = 1, .columns = 96, .row_step = 1}), 0, {}, 40, true);
  expect_rows(Module(40, 96, {.rows = 1, .columns = 32, .row_step = 3}), 3, {}, 30, true);
}

TEST(RowPacker, KeepsOneScaleOfAMatrixWhateverItsRows) {
  const Module module(45, 64, {.rows = 45, .columns = 64, .row_step = 0});
  expect_rows(module, 0, {}, 45, false);
  expect_rows(module, 16, {}, 29, false);
}

TEST(RowPacker, HoldsFloat8OfOtherWidthsAsFloats) {
  for (const Module& module : {Module(20, 80, {.rows = 1, .columns = 80, .row_step = 1}),
                               Module(20, 96, {.rows = 1, .columns = 48, .row_step = 2})}) {
    const RowPacker packer = module.packer(0, {}, 20);
    const Packed packed(module, packer);
    ASSERT_EQ(packed.linear.held, Held::kFloats);
    std::vector<float> expected(static_cast<size_t>(20 * module.k));
    module.source->floats(module.bases(), 0, 20, expected.data());
    const auto* rows = static_cast<const float*>(packed.linear.floats.rows);
    EXPECT_EQ(std::vector<float>(rows, rows + expected.size()), expected);
  }
}

TEST(RowPacker, FindsWhatIsNoNumber) {
  const auto finite = [](const Module& module) {
    return Packed(module, module.packer(0, {}, module.n)).finite;
  };
  Module module(300, 320, kBlocks);
  EXPECT_TRUE(finite(module));
  module.numbers[250 * 320 + 7] = 0xff;
  EXPECT_FALSE(finite(module));
  module.numbers[250 * 320 + 7] = 0xfe;
  module.scales[8] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(finite(module));
  // The largest number would be infinite.
  module.scales[8] = 0x1p+121f;
  EXPECT_FALSE(finite(module));
}

TEST(RowPacker, TellsFormsApart) {
  const Module module(300, 320, kBlocks);
  EXPECT_TRUE(module.packer(16, {}, 64).same(module.packer(16, {}, 64)));
  EXPECT_FALSE(module.packer(16, {}, 64).same(module.packer(120, {}, 64)));
  const Module by_row(300, 320, {.rows = 1, .columns = 128, .row_step = 3});
  EXPECT_FALSE(module.packer(16, {}, 64).same(by_row.packer(16, {}, 64)));
}

}  // namespace
}  // namespace weir::model
