// Products of weights in each form of numbers and scales that a container holds: scalar against a
// formula in double precision, all other ISAs against scalar, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "kernels/cpu_ops.h"
#include "kernels/form_weights.h"
#include "kernels/tables.h"

namespace weir::kernels {
namespace {

constexpr int32_t kRows = 79;

Aligned<uint8_t>& scratch() {
  static Aligned<uint8_t> memory(static_cast<size_t>(kScratchBytes));
  return memory;
}

enum class Kind { kInt8, kBf16, kExact };
constexpr Kind kKinds[] = {Kind::kInt8, Kind::kBf16, Kind::kExact};

const char* kind_name(Kind kind) {
  return kind == Kind::kInt8 ? "int8" : kind == Kind::kBf16 ? "bf16" : "exact";
}

struct Layer {
  Layer(const Form& its_form, uint32_t seed)
      : form(its_form),
        n(form.shape.n),
        k(form.shape.k),
        weights(form.shape, seed),
        x(random_floats(static_cast<size_t>(kRows * k), seed + 1)),
        q(kRows, k, form.shape.group),
        bf16(kRows, k) {
    for (size_t i = 0; i < x.size(); i += 7) x[i] *= 30;
    ops_for(Isa::kScalar).quantise_rows(x.data(), k, kRows, k, q.rows());
    ops_for(Isa::kScalar).round_rows(x.data(), k, kRows, k, bf16.rows());
  }

  // [rows][n], of which columns [begin, n) are computed and the others stay 0.
  std::vector<float> run(const Ops& ops, Kind kind, int32_t rows, int32_t begin = 0,
                         const int32_t* index = nullptr) const {
    std::vector<float> y(static_cast<size_t>(rows * n));
    const GemmRange range = {
        .index = index, .rows = rows, .begin = begin, .end = n, .y = y.data(), .y_stride = n};
    const QuantMatrix& w = weights.packed();
    if (kind == Kind::kInt8)
      ops.gemm_quant_int8(w, q.rows(), range, scratch().data());
    else if (kind == Kind::kBf16)
      ops.gemm_quant_bf16(w, bf16.rows(), range, scratch().data());
    else
      ops.gemm_quant_f32(w, x.data(), k, range, scratch().data());
    return y;
  }

  // In double, and what its error is to be measured by: the sum of the terms' magnitudes.
  double reference(Kind kind, int32_t row, int32_t column, double& magnitude) const {
    double sum = 0;
    magnitude = 0;
    for (int32_t i = 0; i < k; ++i) {
      double a = double{x[static_cast<size_t>(row * k + i)]};
      if (kind == Kind::kInt8) {
        const int32_t place = i / 8 * 8 + i % 2 * 4 + i % 8 / 2;
        const int32_t g = row * (k / form.shape.group) + i / form.shape.group;
        a = q.q()[static_cast<size_t>(row * k + place)] * double{q.scale()[static_cast<size_t>(g)]};
      }
      sum += weights.value(column, i) * a;
      magnitude += weights.magnitude(column, i) * std::abs(a);
    }
    return sum;
  }

  Form form;
  int32_t n, k;
  FormWeights weights;
  std::vector<float> x;
  QuantBuffer q;
  Bf16Buffer bf16;
};

TEST(Forms, ScalarAgreesWithDoublePrecision) {
  for (const Form& form : forms()) {
    const Layer layer(form, 5);
    for (const Kind kind : kKinds) {
      const std::vector<float> y = layer.run(ops_for(Isa::kScalar), kind, 2);
      // Products round to 24 bits; in bf16, weights and activations to 8.
      const double epsilon = kind == Kind::kBf16 ? 0x1p-7 : 0x1p-20;
      for (int32_t m = 0; m < 2; ++m)
        for (int32_t c = 0; c < layer.n; ++c) {
          double magnitude = 0;
          const double expected = layer.reference(kind, m, c, magnitude);
          ASSERT_NEAR(y[static_cast<size_t>(m * layer.n + c)], expected, magnitude * epsilon)
              << form.name << " " << kind_name(kind) << " at " << m << "," << c;
        }
    }
  }
}

TEST(Forms, RowsReadBackAreTheNumbersPacked) {
  for (const Form& form : forms()) {
    const FormWeights weights(form.shape, 7);
    for (const Isa isa : {Isa::kScalar, Isa::kAvx2, Isa::kAvx512, Isa::kAmx}) {
      if (!isa_available(isa)) continue;
      std::vector<float> row(static_cast<size_t>(form.shape.k) + 1, 123.0f);
      for (int32_t r = 0; r < form.shape.n; ++r) {
        ops_for(isa).dequantise_row(weights.packed(), r, row.data());
        for (int32_t i = 0; i < form.shape.k; ++i)
          ASSERT_EQ(row[static_cast<size_t>(i)], static_cast<float>(weights.value(r, i)))
              << form.name << " " << isa_name(isa) << " row " << r << " column " << i;
        ASSERT_EQ(row.back(), 123.0f);
      }
    }
  }
}

TEST(Forms, EveryTableHasScalarsBitsWhateverTheBatch) {
  const auto all = tables();
  for (const Form& form : forms()) {
    const Layer layer(form, 11);
    for (const Kind kind : kKinds) {
      const std::vector<float> expected = layer.run(ops_for(Isa::kScalar), kind, kRows);
      for (const auto& [name, ops] : all) {
        std::mt19937 random(3);
        for (const int32_t rows : {1, 2, 3, 4, 5, 7, 8, 12, 13, 16, 17, 24, 33, 64, 79}) {
          for (const bool indexed : {false, true}) {
            std::vector<int32_t> index(static_cast<size_t>(rows));
            for (int32_t m = 0; m < rows; ++m)
              index[static_cast<size_t>(m)] = indexed ? static_cast<int32_t>(random() % kRows) : m;
            const int32_t blocks = (layer.n + 15) / 16;
            const int32_t begin =
                indexed ? static_cast<int32_t>(random() % static_cast<uint32_t>(blocks)) * 16 : 0;
            const std::vector<float> y =
                layer.run(ops, kind, rows, begin, indexed ? index.data() : nullptr);
            for (int32_t m = 0; m < rows; ++m)
              for (int32_t c = begin; c < layer.n; ++c) {
                const float found = y[static_cast<size_t>(m * layer.n + c)];
                const float wanted =
                    expected[static_cast<size_t>(index[static_cast<size_t>(m)] * layer.n + c)];
                ASSERT_EQ(std::memcmp(&found, &wanted, 4), 0)
                    << form.name << " " << kind_name(kind) << " " << name << " rows " << rows
                    << " at " << m << "," << c << ": " << found << " for " << wanted;
              }
          }
        }
      }
    }
  }
}

// All numbers at their largest, all activations at +-127: no sum may saturate.
TEST(Forms, ExtremeProductsAreExact) {
  for (const Form& form : forms()) {
    QuantShape shape = form.shape;
    shape.n = 16;
    shape.scales = ScaleForm::kZeros;
    shape.scale_type = FloatType::kF32;
    shape.mins = false;
    shape.offset = 0;
    const auto k = static_cast<size_t>(shape.k), groups = k / static_cast<size_t>(shape.group);
    // Of a table the largest value is not the last.
    const int32_t code = shape.grid == Grid::kE2m1 ? 7 : (1 << shape.bits) - 1;
    const int32_t value = shape.grid == Grid::kIq4 ? 113 : shape.grid == Grid::kE2m1 ? 12 : code;
    std::vector<uint8_t> codes(k, static_cast<uint8_t>(code)), zeros(groups, 0);
    std::vector<float> scales(groups, 1.0f);
    QuantMatrix w = matrix_of(shape);
    const Aligned<uint8_t> words(static_cast<size_t>(packed_word_bytes(w)));
    const Aligned<uint8_t> packed_scales(static_cast<size_t>(packed_scale_bytes(w)));
    const std::vector<RowNumbers> rows(16, {.codes = codes.data(),
                                            .scales = reinterpret_cast<uint8_t*>(scales.data()),
                                            .zeros = zeros.data()});
    pack_block(shape, rows.data(), 16, words.data(), packed_scales.data());
    w.words = words.data();
    w.scales = packed_scales.data();
    const std::vector<float> x(16 * k, -127.0f);
    QuantBuffer q(16, shape.k, shape.group);
    ops_for(Isa::kScalar).quantise_rows(x.data(), shape.k, 16, shape.k, q.rows());
    for (const auto& [name, ops] : tables()) {
      for (const int32_t count : {1, 4, 5, 16}) {
        std::vector<float> y(static_cast<size_t>(count) * 16);
        ops.gemm_quant_int8(w, q.rows(), {.rows = count, .end = 16, .y = y.data(), .y_stride = 16},
                            scratch().data());
        for (const float found : y)
          ASSERT_EQ(found, -127.0f * static_cast<float>(value * shape.k))
              << form.name << " " << name;
      }
    }
  }
}

}  // namespace
}  // namespace weir::kernels
