// The tile instructions and their emulation against a formula, and the AMX kernel's layout and
// loops on emulated tiles, where the processor has no real ones.
#include "kernels/amx/tile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "kernels/cpu_features.h"
#include "kernels/cpu_ops.h"
#include "kernels/isa.h"
#include "kernels/quant_weights.h"

namespace weir::kernels {
namespace {

struct Product {
  int rows;
  int depth;  // Bytes of a row of A.
};

constexpr Product kProducts[] = {{16, 64}, {16, 32}, {1, 64}, {9, 64}, {12, 32}, {5, 4}};

// Sums in tile 4, A in tile 6, B in tile 7.
amx::TileShapes shapes_of(const Product& p) {
  amx::TileShapes shapes;
  shapes.rows[4] = static_cast<uint8_t>(p.rows);
  shapes.row_bytes[4] = 64;
  shapes.rows[6] = static_cast<uint8_t>(p.rows);
  shapes.row_bytes[6] = static_cast<uint16_t>(p.depth);
  shapes.rows[7] = static_cast<uint8_t>(p.depth / 4);
  shapes.row_bytes[7] = 64;
  return shapes;
}

// C += A B with the tiles given; every operand at strides of its own.
template <class Tiles>
std::vector<int32_t> multiply(const Product& p, const std::vector<int8_t>& a,
                              const std::vector<uint8_t>& b, std::vector<int32_t> c) {
  const amx::TileShapes shapes = shapes_of(p);
  std::vector<int32_t> out(c.size(), -1);
  Tiles tiles(shapes);
  tiles.template load<4>(c.data(), 80);
  tiles.template load<6>(a.data(), 100);
  tiles.template load<7>(b.data(), 128);
  tiles.template multiply_s8_u8<4, 6, 7>();
  tiles.template store<4>(out.data(), 80);
  return out;
}

template <class Tiles>
void expect_products() {
  std::mt19937 random(1);
  for (const Product& p : kProducts) {
    std::vector<int8_t> a(16 * 100 + 64);
    std::vector<uint8_t> b(16 * 128 + 64);
    std::vector<int32_t> c(16 * 20 + 16);
    for (int8_t& value : a) value = static_cast<int8_t>(random());
    for (uint8_t& value : b) value = static_cast<uint8_t>(random());
    for (int32_t& value : c) value = static_cast<int32_t>(random() % 1000) - 500;
    const std::vector<int32_t> out = multiply<Tiles>(p, a, b, c);
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 20; ++n) {
        const auto at = static_cast<size_t>(m * 20 + n);
        int32_t expected = -1;  // Outside the tile: not written.
        if (m < p.rows && n < 16) {
          expected = c[at];
          for (int i = 0; i < p.depth; ++i)
            expected += a[static_cast<size_t>(m * 100 + i)] *
                        b[static_cast<size_t>(i / 4 * 128 + n * 4 + i % 4)];
        }
        ASSERT_EQ(out[at], expected) << p.rows << "x" << p.depth << " at " << m << "," << n;
      }
    }
  }
}

// The same for bf16: pairs of a row of A with pairs of a column of B.
template <class Tiles>
void expect_bf16_products() {
  std::mt19937 random(1);
  const auto random_bf16 = [&] {
    return float_to_bf16(static_cast<float>(static_cast<int32_t>(random() % 20001) - 10000) / 777);
  };
  for (const Product& p : kProducts) {
    const int pairs = p.depth / 4;
    std::vector<uint16_t> a(16 * 50 + 32), b(16 * 64 + 32);
    std::vector<float> c(16 * 20 + 16), out(c.size(), -1);
    for (uint16_t& value : a) value = random_bf16();
    for (uint16_t& value : b) value = random_bf16();
    for (float& value : c) value = static_cast<float>(random() % 1000) / 7 - 50;
    const amx::TileShapes shapes = shapes_of(p);
    Tiles tiles(shapes);
    tiles.template load<4>(c.data(), 80);
    tiles.template load<6>(a.data(), 100);
    tiles.template load<7>(b.data(), 128);
    tiles.template multiply_bf16<4, 6, 7>();
    tiles.template store<4>(out.data(), 80);
    for (int m = 0; m < 16; ++m) {
      for (int n = 0; n < 20; ++n) {
        const auto at = static_cast<size_t>(m * 20 + n);
        float expected = -1;  // Outside the tile: not written.
        if (m < p.rows && n < 16) {
          float even = 0, odd = 0;
          for (int i = 0; i < pairs; ++i) {
            const auto in_a = static_cast<size_t>(m * 50 + 2 * i);
            const auto in_b = static_cast<size_t>(i * 64 + 2 * n);
            even = std::fma(bf16_to_float(a[in_a]), bf16_to_float(b[in_b]), even);
            odd = std::fma(bf16_to_float(a[in_a + 1]), bf16_to_float(b[in_b + 1]), odd);
          }
          expected = c[at] + (even + odd);
        }
        ASSERT_EQ(out[at], expected) << p.rows << "x" << pairs << " at " << m << "," << n;
      }
    }
  }
}

TEST(AmxTile, EmulationMultipliesAsDefined) {
  expect_products<amx::EmulatedTiles>();
  expect_bf16_products<amx::EmulatedTiles>();
}

TEST(AmxTile, HardwareMultipliesAsDefined) {
  if (!isa_available(Isa::kAmx)) GTEST_SKIP() << "this machine lacks AMX: " << processor_name();
  expect_products<amx::HardwareTiles>();
  expect_bf16_products<amx::HardwareTiles>();
}

TEST(AmxTile, KernelsOnEmulatedTilesHaveScalarsBits) {
  if (!isa_available(Isa::kAvx512))
    GTEST_SKIP() << "this machine lacks AVX-512: " << processor_name();
  Ops emulated = ops_for(Isa::kAvx512);
  amx::fill_gemm_emulated(emulated);
  amx::fill_gemm_bf16_emulated(emulated);
  Aligned<uint8_t> scratch(static_cast<size_t>(kScratchBytes));
  for (const AffineShape& shape :
       {AffineShape{61, 192, 64, 4, FloatType::kF16}, AffineShape{48, 96, 32, 4, FloatType::kBF16},
        AffineShape{20, 384, 128, 8, FloatType::kF32},
        AffineShape{35, 1120, 32, 4, FloatType::kF16}}) {
    const QuantWeights weights(shape, 3);
    constexpr int32_t kRows = 45;
    const std::vector<float> x = random_floats(static_cast<size_t>(kRows * shape.k), 5);
    QuantBuffer q(kRows, shape.k, shape.group);
    Bf16Buffer bf16(kRows, shape.k);
    ops_for(Isa::kScalar).quantise_rows(x.data(), shape.k, kRows, shape.k, q.rows());
    ops_for(Isa::kScalar).round_rows(x.data(), shape.k, kRows, shape.k, bf16.rows());
    std::vector<int32_t> index(kRows);
    for (int32_t i = 0; i < kRows; ++i) index[static_cast<size_t>(i)] = (i * 7) % kRows;
    const auto multiply = [&](const Ops& ops, bool in_bf16, GemmRange range,
                              std::vector<float>& y) {
      range.y = y.data();
      if (in_bf16)
        ops.gemm_quant_bf16(weights.packed(), bf16.rows(), range, scratch.data());
      else
        ops.gemm_quant_int8(weights.packed(), q.rows(), range, scratch.data());
    };
    for (const int32_t rows : {1, 8, 12, 16, 17, 31, 32, 45}) {
      for (const bool indexed : {false, true}) {
        for (const bool in_bf16 : {false, true}) {
          std::vector<float> expected(static_cast<size_t>(rows * shape.n)), found(expected.size());
          GemmRange range;
          range.index = indexed ? index.data() : nullptr;
          range.rows = rows;
          range.end = shape.n;
          range.y_stride = shape.n;
          multiply(ops_for(Isa::kScalar), in_bf16, range, expected);
          multiply(emulated, in_bf16, range, found);
          ASSERT_EQ(std::memcmp(expected.data(), found.data(), found.size() * sizeof(float)), 0)
              << (in_bf16 ? "bf16" : "int8") << " group " << shape.group << " rows " << rows;
        }
      }
    }
  }
}

// Float weights of any k: the last step of 32 ends with zeros.
TEST(AmxTile, FloatProductsOfAnyWidthHaveScalarsBits) {
  if (!cpu_features().fast_bf16 && !cpu_features().amx)
    GTEST_SKIP() << "this machine lacks AVX512-BF16: " << processor_name();
  Ops tiles = ops_for(detect_isa());
  if (!cpu_features().amx) amx::fill_gemm_bf16_emulated(tiles);
  const Ops& scalar = ops_for(Isa::kScalar);
  Aligned<uint8_t> scratch(static_cast<size_t>(kScratchBytes));
  constexpr int32_t kRows = 37, kIndex[kRows] = {3, 1, 36, 0};
  for (const auto& [n, k] : {std::pair{16, 1}, {33, 31}, {48, 588}, {20, 1063}, {130, 72},
                             {16, 4304}})
    for (const FloatType type : {FloatType::kBF16, FloatType::kF16}) {
      const std::vector<float> x = random_floats(static_cast<size_t>(kRows * k), 7);
      std::vector<uint8_t> numbers;
      for (const float w : random_floats(static_cast<size_t>(n * k), 8))
        append_float(numbers, type, w);
      const FloatMatrix w = {.n = n, .k = k, .type = type, .rows = numbers.data()};
      // What is there before must not be read.
      Bf16Buffer expected_rows(kRows, k), rows(kRows, k);
      for (const Bf16Buffer* buffer : {&expected_rows, &rows})
        std::memset(buffer->rows().x, 0xff, static_cast<size_t>(kRows * buffer->rows().stride) * 2);
      scalar.round_rows(x.data(), k, kRows, k, expected_rows.rows());
      tiles.round_rows(x.data(), k, kRows, k, rows.rows());
      ASSERT_EQ(std::memcmp(rows.x().data(), expected_rows.x().data(), 2 * rows.x().size()), 0)
          << "k " << k;
      for (const int32_t* index : {static_cast<const int32_t*>(nullptr), kIndex}) {
        std::vector<float> expected(static_cast<size_t>(kRows * n), 1), found(expected.size(), 2);
        GemmRange range = {.index = index, .rows = kRows, .end = n, .y_stride = n};
        range.y = expected.data();
        scalar.gemm_float_bf16(w, rows.rows(), range, scratch.data());
        range.y = found.data();
        tiles.gemm_float_bf16(w, rows.rows(), range, scratch.data());
        ASSERT_EQ(std::memcmp(expected.data(), found.data(), found.size() * sizeof(float)), 0)
            << n << " x " << k;
      }
    }
}

}  // namespace
}  // namespace weir::kernels
