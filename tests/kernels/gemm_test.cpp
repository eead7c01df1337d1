// The linear layers: scalar against plain formulas in double precision, every other ISA against
// scalar, and the promise of batch invariance.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <tuple>

#include "kernels/cpu_ops.h"
#include "kernels/isa.h"
#include "kernels/quant_weights.h"

namespace weir::kernels {
namespace {

constexpr float kCanary = -12345.5f;

Aligned<uint8_t>& scratch() {
  static Aligned<uint8_t> memory(static_cast<size_t>(kScratchBytes));
  return memory;
}

std::string type_name(FloatType type) {
  const char* names[] = {"F32", "F16", "BF16"};
  return names[static_cast<size_t>(type)];
}

// Results with space around and between the rows, which no kernel may touch.
struct Output {
  Output(int32_t row_count, int32_t column_count)
      : rows(row_count),
        columns(column_count),
        stride(column_count + 13),
        memory(static_cast<size_t>((row_count + 1) * stride) + 16, kCanary) {}
  float* y() { return memory.data() + 16; }
  float at(int32_t row, int32_t column) const {
    return memory[static_cast<size_t>(16 + row * stride + column)];
  }
  // Whether everything but columns [begin, end) of the rows is untouched.
  bool untouched_outside(int32_t begin, int32_t end) const {
    for (size_t i = 0; i < memory.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) - 16;
      const bool inside =
          at >= 0 && at / stride < rows && at % stride >= begin && at % stride < end;
      if (!inside && memory[i] != kCanary) return false;
    }
    return true;
  }
  int32_t rows;
  int32_t columns;
  int64_t stride;
  std::vector<float> memory;
};

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// One layer with its activations, for any of the kinds of product.
struct Layer {
  enum class Kind { kInt8, kBf16, kFloatBf16, kExact, kFloat };

  Layer(Kind layer_kind, const AffineShape& layer_shape, int32_t source_rows, uint32_t seed)
      : kind(layer_kind),
        shape(layer_shape),
        weights(layer_shape, seed),
        x_stride(layer_shape.k + 3),
        x(random_floats(static_cast<size_t>(source_rows * (layer_shape.k + 3)), seed + 1)),
        q(source_rows, layer_shape.k, layer_shape.group),
        bf16(source_rows, layer_shape.k) {
    // Zero groups and large ones among the activations.
    for (int32_t i = 0; i < shape.k && i < shape.group; ++i) x[static_cast<size_t>(i)] = 0;
    for (size_t i = 0; i < x.size(); i += 7) x[i] *= 30;
    for (int64_t i = 0; i < int64_t{shape.n} * shape.k; ++i)
      append_float(float_rows, shape.scale_type,
                   static_cast<float>(weights.value(static_cast<int32_t>(i / shape.k),
                                                    static_cast<int32_t>(i % shape.k))));
    ops_for(Isa::kScalar).quantise_rows(x.data(), x_stride, source_rows, shape.k, q.rows());
    ops_for(Isa::kScalar).round_rows(x.data(), x_stride, source_rows, shape.k, bf16.rows());
  }

  FloatMatrix float_matrix() const {
    FloatMatrix m;
    m.n = shape.n;
    m.k = shape.k;
    m.type = shape.scale_type;
    m.rows = float_rows.data();
    return m;
  }

  void run(Isa isa, Output& out, int32_t begin, int32_t end, const int32_t* index = nullptr) const {
    run(ops_for(isa), out, begin, end, index);
  }
  void run(const Ops& ops, Output& out, int32_t begin, int32_t end,
           const int32_t* index = nullptr) const {
    GemmRange range;
    range.index = index;
    range.rows = out.rows;
    range.begin = begin;
    range.end = end;
    range.y = out.y();
    range.y_stride = out.stride;
    if (kind == Kind::kInt8)
      ops.gemm_quant_int8(weights.packed(), q.rows(), range, scratch().data());
    else if (kind == Kind::kBf16)
      ops.gemm_quant_bf16(weights.packed(), bf16.rows(), range, scratch().data());
    else if (kind == Kind::kFloatBf16)
      ops.gemm_float_bf16(float_matrix(), bf16.rows(), range, scratch().data());
    else if (kind == Kind::kExact)
      ops.gemm_quant_f32(weights.packed(), x.data(), x_stride, range, scratch().data());
    else
      ops.gemm_float_f32(float_matrix(), x.data(), x_stride, range, scratch().data());
  }

  // What the output means, in double; `magnitude` is the sum of the terms' magnitudes, which bounds
  // the rounding errors.
  double reference(int32_t row, int32_t column, double& magnitude) const {
    double sum = 0;
    magnitude = 0;
    for (int32_t i = 0; i < shape.k; ++i) {
      const bool floats = kind == Kind::kFloat || kind == Kind::kFloatBf16;
      const double w = floats ? double{read_float(float_rows.data(), shape.scale_type,
                                                  int64_t{column} * shape.k + i)}
                              : weights.value(column, i);
      double a = x[static_cast<size_t>(row * x_stride + i)];
      double largest = std::abs(w * a);
      if (kind == Kind::kInt8) {
        const int32_t place = i / 8 * 8 + i % 2 * 4 + i % 8 / 2;
        const int32_t g = i / shape.group;
        a = static_cast<double>(q.q()[static_cast<size_t>(row * shape.k + place)]) *
            double{q.scale()[static_cast<size_t>(row * (shape.k / shape.group) + g)]};
        largest =
            std::abs(a) * (std::abs(double{weights.bias(column, g)}) +
                           std::abs(double{weights.scale(column, g)}) * weights.quantum(column, i));
      }
      if (kind == Kind::kBf16 || kind == Kind::kFloatBf16) {
        // Cut, raised and rounded, each by less than 2^-8; and what a pair's second carries below
        // its bits. In units of the rounding that the caller allows for.
        const double scale = std::abs(double{weights.scale(column, i / shape.group)});
        largest = (largest * 0x1p-6 + std::abs(a) * scale * 0x1p-12) * 0x1p24 / (shape.k + 2);
      }
      sum += w * a;
      magnitude += largest;
    }
    return sum;
  }

  Kind kind;
  AffineShape shape;
  QuantWeights weights;
  int64_t x_stride;
  std::vector<float> x;
  QuantBuffer q;
  Bf16Buffer bf16;
  std::vector<uint8_t> float_rows;
};

const Layer::Kind kKinds[] = {Layer::Kind::kInt8, Layer::Kind::kBf16, Layer::Kind::kFloatBf16,
                              Layer::Kind::kExact, Layer::Kind::kFloat};
const char* kind_name(Layer::Kind kind) {
  switch (kind) {
    case Layer::Kind::kInt8:
      return "int8";
    case Layer::Kind::kBf16:
      return "bf16";
    case Layer::Kind::kFloatBf16:
      return "float bf16";
    case Layer::Kind::kExact:
      return "exact";
    case Layer::Kind::kFloat:
      return "float";
  }
  return "?";
}

// Shapes that reach every path: one group, odd block counts, n not a multiple of 16, each bit width
// and scale type.
std::vector<AffineShape> shapes() {
  return {{16, 32, 32, 4, FloatType::kF16},    {48, 128, 32, 4, FloatType::kBF16},
          {61, 192, 64, 4, FloatType::kF16},   {100, 384, 128, 4, FloatType::kF32},
          {33, 96, 32, 8, FloatType::kF16},    {80, 256, 64, 8, FloatType::kBF16},
          {17, 128, 128, 8, FloatType::kF32},  {64, 1152, 32, 4, FloatType::kF16},
          {40, 640, 128, 8, FloatType::kF16},  {5, 64, 64, 3, FloatType::kF16},
          {176, 64, 32, 6, FloatType::kF32},   {37, 2080, 32, 4, FloatType::kF16},
          {150, 1088, 64, 4, FloatType::kBF16}};
}

// gemm_float_bf16 takes no float32 weights.
bool applies(Layer::Kind kind, const AffineShape& shape) {
  return kind != Layer::Kind::kFloatBf16 || shape.scale_type != FloatType::kF32;
}

TEST(Gemm, NamesTheIsasThatThisMachineTests) {
  std::string tested, lacking;
  for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
    std::string& list = isa_available(isa) ? tested : lacking;
    list += ' ';
    list += isa_name(isa);
  }
  std::printf("kernels tested on %s:%s; lacking:%s\n", processor_name().c_str(), tested.c_str(),
              lacking.empty() ? " none" : lacking.c_str());
  EXPECT_TRUE(isa_available(detect_isa()));
}

TEST(Gemm, ScalarAgreesWithDoublePrecision) {
  for (const Layer::Kind kind : kKinds) {
    for (const AffineShape& shape : shapes()) {
      if (!applies(kind, shape)) continue;
      const Layer layer(kind, shape, 3, 5);
      Output out(3, shape.n);
      layer.run(Isa::kScalar, out, 0, shape.n);
      for (int32_t m = 0; m < 3; ++m) {
        for (int32_t c = 0; c < shape.n; ++c) {
          double magnitude = 0;
          const double expected = layer.reference(m, c, magnitude);
          // Each of k (or 2 k / group) sums and the weight itself round once.
          ASSERT_NEAR(out.at(m, c), expected, magnitude * (shape.k + 2) * 0x1p-24)
              << kind_name(kind) << " n " << shape.n << " k " << shape.k << " at " << m << "," << c;
        }
      }
    }
  }
}

class GemmIsa : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!isa_available(GetParam()))
      GTEST_SKIP() << "this machine lacks " << isa_name(GetParam()) << ": " << processor_name();
  }
};

// Int8 products and the exact product have one order on every ISA, so their bits are scalar's.
TEST_P(GemmIsa, AgreesWithScalarOnEveryShapeAndRowCount) {
  for (const Layer::Kind kind : kKinds) {
    for (const AffineShape& shape : shapes()) {
      if (!applies(kind, shape)) continue;
      const Layer layer(kind, shape, 79, 17);
      Output expected(79, shape.n);
      layer.run(Isa::kScalar, expected, 0, shape.n);
      // Float sums have an order per ISA: they are compared within the rounding errors.
      std::vector<double> exact, tolerance;
      for (int32_t i = 0; kind == Layer::Kind::kFloat && i < 79 * shape.n; ++i) {
        double magnitude = 0;
        exact.push_back(layer.reference(i / shape.n, i % shape.n, magnitude));
        tolerance.push_back(magnitude * (shape.k + 2) * 0x1p-24);
      }
      for (const int32_t rows : {1,  2,  3,  4,  5,  6,  7,  8,  9,  11, 12, 13, 15,
                                 16, 17, 24, 25, 31, 32, 33, 40, 48, 64, 70, 79}) {
        Output out(rows, shape.n);
        layer.run(GetParam(), out, 0, shape.n);
        ASSERT_TRUE(out.untouched_outside(0, shape.n));
        for (int32_t m = 0; m < rows; ++m) {
          for (int32_t c = 0; c < shape.n; ++c) {
            const auto where = [&] {
              return std::string(kind_name(kind)) + " " + type_name(shape.scale_type) + " n " +
                     std::to_string(shape.n) + " k " + std::to_string(shape.k) + " group " +
                     std::to_string(shape.group) + " bits " + std::to_string(shape.bits) +
                     " rows " + std::to_string(rows) + " at " + std::to_string(m) + "," +
                     std::to_string(c);
            };
            if (kind != Layer::Kind::kFloat) {
              ASSERT_TRUE(same_bits(out.at(m, c), expected.at(m, c)))
                  << where() << ": " << out.at(m, c) << " for " << expected.at(m, c);
            } else {
              const auto at = static_cast<size_t>(m * shape.n + c);
              ASSERT_NEAR(out.at(m, c), exact[at], tolerance[at]) << where();
            }
          }
        }
      }
    }
  }
}

TEST_P(GemmIsa, ARowsBitsDependNeitherOnTheBatchNorOnTheColumnsAsked) {
  for (const Layer::Kind kind : kKinds) {
    for (const AffineShape& shape : shapes()) {
      if (!applies(kind, shape)) continue;
      const Layer layer(kind, shape, 79, 23);
      Output whole(79, shape.n);
      layer.run(GetParam(), whole, 0, shape.n);
      std::mt19937 random(3);
      for (int32_t trial = 0; trial < 24; ++trial) {
        // Any rows in any order, some twice; any range of blocks.
        const int32_t rows = 1 + static_cast<int32_t>(random() % 90);
        std::vector<int32_t> index(static_cast<size_t>(rows));
        for (int32_t& row : index) row = static_cast<int32_t>(random() % 79);
        const int32_t blocks = (shape.n + 15) / 16;
        const int32_t first = static_cast<int32_t>(random() % static_cast<uint32_t>(blocks));
        const int32_t count =
            1 + static_cast<int32_t>(random() % static_cast<uint32_t>(blocks - first));
        const int32_t begin = first * 16;
        const int32_t end = std::min(shape.n, (first + count) * 16);
        Output out(rows, shape.n);
        layer.run(GetParam(), out, begin, end, index.data());
        ASSERT_TRUE(out.untouched_outside(begin, end));
        for (int32_t m = 0; m < rows; ++m)
          for (int32_t c = begin; c < end; ++c)
            ASSERT_TRUE(same_bits(out.at(m, c), whole.at(index[static_cast<size_t>(m)], c)))
                << kind_name(kind) << " n " << shape.n << " k " << shape.k << " group "
                << shape.group << " rows " << rows << " columns " << begin << ".." << end << " at "
                << m << "," << c;
      }
    }
  }
}

// What is faster on one processor is right on all of them.
TEST(Gemm, TilesOfOneBlockOfColumnsAndOfTwoHaveScalarsBits) {
  if (!isa_available(Isa::kAvx512)) GTEST_SKIP() << "no AVX-512";
  std::array<Ops, 2> tables = {ops_for(Isa::kAvx512), ops_for(Isa::kAvx512)};
  avx512::fill_gemm(tables[0]);
  avx512::fill_gemm_four_pipes(tables[1]);
  for (const AffineShape& shape : shapes()) {
    const Layer layer(Layer::Kind::kInt8, shape, 79, 29);
    Output whole(79, shape.n);
    layer.run(Isa::kScalar, whole, 0, shape.n);
    std::mt19937 random(5);
    for (int32_t rows = 1; rows <= 79; ++rows) {
      std::vector<int32_t> index(static_cast<size_t>(rows));
      for (int32_t& row : index) row = static_cast<int32_t>(random() % 79);
      const int32_t blocks = (shape.n + 15) / 16;
      const int32_t begin = static_cast<int32_t>(random() % static_cast<uint32_t>(blocks)) * 16;
      for (const Ops& ops : tables) {
        Output out(rows, shape.n);
        layer.run(ops, out, begin, shape.n, index.data());
        ASSERT_TRUE(out.untouched_outside(begin, shape.n));
        for (int32_t m = 0; m < rows; ++m)
          for (int32_t c = begin; c < shape.n; ++c)
            ASSERT_TRUE(same_bits(out.at(m, c), whole.at(index[static_cast<size_t>(m)], c)))
                << " n " << shape.n << " k " << shape.k << " bits " << shape.bits << " rows "
                << rows << " from " << begin << " at " << m << "," << c;
      }
    }
  }
}

TEST_P(GemmIsa, AnEmptyRangeOrNoRowsWritesNothing) {
  for (const Layer::Kind kind : kKinds) {
    const Layer layer(kind, {48, 64, 32, 4, FloatType::kF16}, 4, 29);
    Output out(4, 48);
    layer.run(GetParam(), out, 16, 16);
    EXPECT_TRUE(out.untouched_outside(0, 0));
    Output none(0, 48);
    layer.run(GetParam(), none, 0, 48);
    EXPECT_TRUE(none.untouched_outside(0, 0));
  }
}

TEST_P(GemmIsa, RoundedActivationsHaveScalarsBits) {
  for (const int32_t k : {32, 96, 576}) {
    constexpr int32_t kRows = 3;
    std::vector<float> x = random_floats(static_cast<size_t>(kRows * (k + 5)), 13);
    // Ties, zeros, denormals, the largest, and what is not finite.
    const float special[] = {1.00390625f, 1.01171875f, -0.0f,    1e-40f,   -1e-39f,
                             3.4e38f,     -3.4e38f,    INFINITY, -INFINITY};
    for (size_t i = 0; i < std::size(special); ++i) x[i] = special[i];
    Bf16Buffer expected(kRows, k), found(kRows, k);
    ops_for(Isa::kScalar).round_rows(x.data(), k + 5, kRows, k, expected.rows());
    ops_for(GetParam()).round_rows(x.data(), k + 5, kRows, k, found.rows());
    for (size_t i = 0; i < expected.x().size(); ++i)
      ASSERT_EQ(found.x()[i], expected.x()[i]) << "k " << k << " at " << i;
  }
}

TEST_P(GemmIsa, QuantisedActivationsHaveScalarsBits) {
  for (const int32_t group : {32, 64, 128}) {
    for (const int32_t k : {group, 3 * group, 9 * group}) {
      constexpr int32_t kRows = 5;
      std::vector<float> x = random_floats(static_cast<size_t>(kRows * (k + 5)), 31);
      for (int32_t i = 0; i < group; ++i) x[static_cast<size_t>(i)] = 0;  // A zero group.
      for (int32_t i = 0; i < group; ++i) x[static_cast<size_t>(k + 5 + i)] *= 1e-33f;
      for (int32_t i = 0; i < group; ++i) x[static_cast<size_t>(2 * (k + 5) + i)] *= 1e33f;
      // Halves: ties of the rounding.
      for (int32_t i = 0; i < group; ++i)
        x[static_cast<size_t>(3 * (k + 5) + i)] = static_cast<float>(i) - 0.5f;
      x[static_cast<size_t>(3 * (k + 5))] = 127;
      QuantBuffer expected(kRows, k, group), found(kRows, k, group);
      ops_for(Isa::kScalar).quantise_rows(x.data(), k + 5, kRows, k, expected.rows());
      std::memset(found.q().data() + kRows * k, 0x5a, 64);
      ops_for(GetParam()).quantise_rows(x.data(), k + 5, kRows, k, found.rows());
      for (int32_t i = 0; i < kRows * k; ++i)
        ASSERT_EQ(found.q()[static_cast<size_t>(i)], expected.q()[static_cast<size_t>(i)])
            << "k " << k << " group " << group << " at " << i;
      for (int32_t i = 0; i < 64; ++i)
        ASSERT_EQ(found.q()[static_cast<size_t>(kRows * k + i)], 0x5a) << "written past the end";
      for (size_t i = 0; i < expected.scale().size(); ++i) {
        ASSERT_TRUE(same_bits(found.scale()[i], expected.scale()[i])) << i;
        ASSERT_TRUE(same_bits(found.sum()[i], expected.sum()[i])) << i;
      }
    }
  }
}

TEST_P(GemmIsa, SomeColumnsOfRowsAreQuantisedInPlace) {
  constexpr int32_t kRows = 3, kColumns = 384, kFirst = 128, kCount = 128;
  const std::vector<float> x = random_floats(kRows * kColumns, 29);
  QuantBuffer whole(kRows, kColumns, 64), part(kRows, kColumns, 64);
  ops_for(Isa::kScalar).quantise_rows(x.data(), kColumns, kRows, kColumns, whole.rows());
  QuantRows out = part.rows();
  out.q += kFirst;
  out.scale += kFirst / 64;
  out.sum += kFirst / 64;
  ops_for(GetParam()).quantise_rows(x.data() + kFirst, kColumns, kRows, kCount, out);
  for (size_t i = 0; i < kRows * kColumns; ++i) {
    const bool inside = i % kColumns >= kFirst && i % kColumns < kFirst + kCount;
    ASSERT_EQ(part.q()[i], inside ? whole.q()[i] : 0) << i;
    ASSERT_EQ(part.scale()[i / 64], inside ? whole.scale()[i / 64] : 0.0f) << i;
    ASSERT_EQ(part.sum()[i / 64], inside ? whole.sum()[i / 64] : 0.0f) << i;
  }
}

TEST_P(GemmIsa, AnActivationThatIsNotFiniteSpoilsItsRowAndNoOther) {
  const AffineShape shape = {32, 128, 32, 4, FloatType::kF16};
  const QuantWeights weights(shape, 37);
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    std::vector<float> x = random_floats(3 * 128, 41);
    x[128 + 70] = bad;
    QuantBuffer q(3, 128, 32);
    ops_for(GetParam()).quantise_rows(x.data(), 128, 3, 128, q.rows());
    Output out(3, 32);
    GemmRange range;
    range.rows = 3;
    range.end = 32;
    range.y = out.y();
    range.y_stride = out.stride;
    ops_for(GetParam()).gemm_quant_int8(weights.packed(), q.rows(), range, scratch().data());
    for (int32_t c = 0; c < 32; ++c) {
      EXPECT_TRUE(std::isfinite(out.at(0, c)));
      EXPECT_FALSE(std::isfinite(out.at(1, c)));
      EXPECT_TRUE(std::isfinite(out.at(2, c)));
    }
  }
}

TEST_P(GemmIsa, ExtremeProductsAreExact) {
  // All q at 255 or 15 and all activations at +-127: the largest sums of a group, where 16-bit
  // partial sums would saturate.
  for (const int32_t bits : {4, 8}) {
    for (const int32_t group : {32, 64, 128}) {
      const AffineShape shape = {16, 2 * group, group, bits, FloatType::kF32};
      StoredQuant stored = QuantWeights(shape, 1).stored();
      const std::vector<uint8_t> ones(static_cast<size_t>(16 * shape.k * bits / 8), 0xff);
      std::vector<float> scales(32, 1.0f), biases(32, 0.0f);
      stored.words = ones.data();
      stored.scales = reinterpret_cast<const uint8_t*>(scales.data());
      stored.biases = reinterpret_cast<const uint8_t*>(biases.data());
      Aligned<uint8_t> words(ones.size()), packed_scales(2 * 2 * 16 * 4);
      repack_blocks(stored, 0, 1, words.data(), packed_scales.data());
      QuantMatrix w;
      w.n = 16;
      w.k = shape.k;
      w.group = group;
      w.bits = bits;
      w.scale_type = FloatType::kF32;
      w.words = words.data();
      w.scales = packed_scales.data();
      for (const int32_t rows : {1, 5, 12, 16, 32}) {
        QuantBuffer q(rows, shape.k, group);
        std::vector<float> x(static_cast<size_t>(rows * shape.k), 127.0f);
        for (int32_t i = 0; i < shape.k; ++i) x[static_cast<size_t>(i)] = -127.0f;
        ops_for(GetParam()).quantise_rows(x.data(), shape.k, rows, shape.k, q.rows());
        Output out(rows, 16);
        GemmRange range;
        range.rows = rows;
        range.end = 16;
        range.y = out.y();
        range.y_stride = out.stride;
        ops_for(GetParam()).gemm_quant_int8(w, q.rows(), range, scratch().data());
        const float expected =
            static_cast<float>((1 << bits) - 1) * 127.0f * static_cast<float>(shape.k);
        for (int32_t m = 0; m < rows; ++m)
          for (int32_t c = 0; c < 16; ++c)
            ASSERT_EQ(out.at(m, c), m == 0 ? -expected : expected) << bits << " " << group;
      }
    }
  }
}

TEST_P(GemmIsa, WidenedRowsAreTheStoredNumbers) {
  for (const FloatType type : {FloatType::kF32, FloatType::kF16, FloatType::kBF16}) {
    for (const int32_t k : {1, 7, 8, 15, 16, 17, 33, 100}) {
      const std::vector<float> values = random_floats(static_cast<size_t>(3 * k), 43);
      // One byte in: a mapped file promises no alignment beyond the element's, a test less.
      std::vector<uint8_t> bytes;
      for (const float value : values) append_float(bytes, type, value);
      FloatMatrix w;
      w.n = 3;
      w.k = k;
      w.type = type;
      w.rows = bytes.data();
      for (int32_t row = 0; row < 3; ++row) {
        std::vector<float> out(static_cast<size_t>(k) + 1, kCanary);
        ops_for(GetParam()).widen_row(w, row, out.data());
        for (int32_t i = 0; i < k; ++i)
          ASSERT_EQ(out[static_cast<size_t>(i)],
                    read_float(bytes.data(), type, int64_t{row} * k + i));
        ASSERT_EQ(out.back(), kCanary);
      }
    }
  }
}

TEST_P(GemmIsa, FloatWeightsMayHaveAnyLengthAndRowCount) {
  for (const FloatType type : {FloatType::kF32, FloatType::kF16, FloatType::kBF16}) {
    for (const int32_t k : {1, 3, 8, 15, 16, 17, 31, 40, 63, 65, 129, 576}) {
      for (const int32_t n : {1, 2, 3, 4, 5, 15, 16, 18, 35}) {
        const std::vector<float> values = random_floats(static_cast<size_t>(n * k), 47);
        std::vector<uint8_t> bytes;
        for (const float value : values) append_float(bytes, type, value);
        FloatMatrix w;
        w.n = n;
        w.k = k;
        w.type = type;
        w.rows = bytes.data();
        const std::vector<float> x = random_floats(static_cast<size_t>(9 * k), 53);
        Output nine(9, n);
        GemmRange range;
        range.rows = 9;
        range.end = n;
        range.y = nine.y();
        range.y_stride = nine.stride;
        ops_for(GetParam()).gemm_float_f32(w, x.data(), k, range, scratch().data());
        EXPECT_TRUE(nine.untouched_outside(0, n));
        for (int32_t m = 0; m < 9; ++m) {
          Output one(1, n);
          range.rows = 1;
          range.y = one.y();
          range.y_stride = one.stride;
          ops_for(GetParam()).gemm_float_f32(w, x.data() + m * k, k, range, scratch().data());
          for (int32_t c = 0; c < n; ++c) {
            double expected = 0, magnitude = 0;
            for (int32_t i = 0; i < k; ++i) {
              const double term = double{read_float(bytes.data(), type, int64_t{c} * k + i)} *
                                  double{x[static_cast<size_t>(m * k + i)]};
              expected += term;
              magnitude += std::abs(term);
            }
            ASSERT_NEAR(nine.at(m, c), expected, magnitude * k * 0x1p-24 + 1e-30);
            ASSERT_TRUE(same_bits(nine.at(m, c), one.at(0, c))) << "k " << k << " n " << n;
          }
        }
      }
    }
  }
}

std::string name_of_isa(const testing::TestParamInfo<Isa>& info) {
  return std::string(isa_name(info.param));
}

INSTANTIATE_TEST_SUITE_P(AllIsas, GemmIsa,
                         testing::Values(Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx),
                         name_of_isa);

}  // namespace
}  // namespace weir::kernels
